# make run     install what is missing, build, train on this machine's package graph
# make run-lambda  the same graph with tensor work in local functions, to the CPU's model
# make test    install what is missing, run every test, also under mpirun
# make test-long  the same with all cases and long variants: more than 15 minutes and up to 16 GB
# make race    every test under the race detector, which takes some ten times as long
# make build   ./siafu and ./siafu-bench, with MPI where an MPI library is installed, and the function;
#              MPICC=mpicc.mpich builds for the MPI of this compiler
# make install  both programs and the function, to /usr/local or PREFIX=DIR
# make function  build/lambda/bootstrap, the function of --tensor lambda, one static file;
#              LAMBDA_ARCH=arm64 builds build/lambda/arm64/bootstrap, for that architecture
# make bench   time kernels and exchanges on this machine
# make deps-cu  CUDA's headers of Debian's non-free component, into build/cuda, for CU=1
# make bench-cuda  build/bench-cuda, a folder to measure a GPU with on a host without Go
# make yardstick  the same kernels in turns with a C loop and OpenBLAS
# make accuracy  the table of docs/results/accuracy.md, on the graphs in $SIAFU_TESTDATA
# make dist    build/dist: archives and Debian packages of this tree, and their checksums
# make wheel   build/dist: wheels of Python for pip, with the static program
# make lint    gofmt, go vet, staticcheck, which go.mod pins, the language of comments, and size.txt
# make size    files, lines, packages and flags, as in size.txt
# make fmt vet the usual
SHELL := /bin/bash
.DEFAULT_GOAL := build

# scripts/toolchain puts Go into build/go where the machine's own is too old.
GO ?= go
BUILD := build
export PATH := $(CURDIR)/$(BUILD)/go/bin:$(PATH)
HOSTARCH := $(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(shell uname -m)))
DATA  := $(BUILD)/debian
RANKS ?= 4

# Without an MPI compiler the program is built without MPI: it then trains in
# an in-process world only, and "siafu doctor" says so. MPICC=mpicc.mpich builds for that MPI.
MPICC ?= mpicc
MPI  := $(shell command -v $(MPICC) 2>/dev/null)
# MPI is a tag, because it links a library. The NVIDIA driver is opened at run time; with
# CU=1 it is linked, through gorgonia.org/cu, which needs CUDA's headers (docs/gpu.md).
comma := ,
TAGS := $(addprefix -tags ,$(if $(MPI),mpi$(if $(CU),$(comma)))$(if $(CU),cu))
CUDA_HOME ?= /usr/local/cuda
CU_CFLAGS = $(addprefix -I,$(wildcard $(CUDA_HOME)/include $(CURDIR)/$(BUILD)/cuda/include))
CU_LDFLAGS = $(addprefix -L,$(wildcard $(CUDA_HOME)/lib64/stubs /usr/lib/*/stubs $(CURDIR)/$(BUILD)/cuda/stubs))
CU_HEADERS = echo '\#include <cuda.h>' | $${CC:-cc} -E $(CU_CFLAGS) - >/dev/null 2>&1
# The flags of this machine's MPI, wherever it lies.
# The launcher of the tests' ranks belongs to the same MPI.
export SIAFU_MPIRUN := $(filter-out mpirun,$(patsubst mpicc%,mpirun%,$(notdir $(MPICC))))
export CGO_CFLAGS := -O2 -g $(if $(MPI),$(shell scripts/mpi-flags compile $(MPICC))) $(if $(CU),$(CU_CFLAGS))
export CGO_LDFLAGS := -O2 -g $(if $(MPI),$(shell scripts/mpi-flags link $(MPICC) $(CURDIR)/$(BUILD)/mpi)) $(if $(CU),$(CU_LDFLAGS))
LAUNCH := ./siafu launch -n $(RANKS) $(if $(MPI),,--in-process)

.PHONY: build function install run run-lambda test unit race race-short mpi-test fuzz accuracy bench bench-cuda yardstick deps go fmt vet clean

build: program function
	$(GO) build $(TAGS) -o siafu-bench ./bench/siafu-bench

.PHONY: program
program: go $(if $(CU),cu-headers)
	@[ -e siafu ] || echo "compiling siafu, which takes some minutes the first time:"
	$(GO) build $(TAGS) -o siafu .

# The function of this machine's architecture has no folder of its own.
FUNCTION = $(BUILD)/lambda/$(addsuffix /,$(filter-out $(HOSTARCH),$(LAMBDA_ARCH)))bootstrap
TRIM = -trimpath
function: go
	CGO_ENABLED=0 GOARCH=$(or $(LAMBDA_ARCH),$(HOSTARCH)) $(GO) build $(TRIM) -tags lambda.norpc -ldflags "-s -w" -o $(FUNCTION) ./lambda/function/bootstrap

PREFIX ?= /usr/local
install: build
	install -D -t $(DESTDIR)$(PREFIX)/bin siafu siafu-bench
	install -D $(FUNCTION) $(DESTDIR)$(PREFIX)/lib/siafu/bootstrap

# The second make sees the compiler that the first one may have installed.
run: PARTS = lists
run: deps
	$(MAKE) --no-print-directory train

.PHONY: train
train: program $(DATA)/meta.json
	$(LAUNCH) train $(DATA) --hidden 64 --epochs 100 --lr 0.03 --dropout 0.5 --input-dropout 0 --weight-decay 0 --out runs/debian-gcn --force
	./siafu train $(DATA) --model mlp --layers 1 --epochs 100 --lr 0.05 --dropout 0 --weight-decay 0 --out runs/debian-linear --force --quiet
	./siafu predict runs/debian-gcn $(DATA)
	./siafu report runs/debian-gcn runs/debian-linear

run-lambda: PARTS = lists
run-lambda: deps
	$(MAKE) --no-print-directory train-lambda

.PHONY: train-lambda
train-lambda: TRAIN = ./siafu train $(DATA) --hidden 64 --epochs 5 --lr 0.03 --dropout 0.5 --input-dropout 0 --weight-decay 0 --force
train-lambda: build $(DATA)/meta.json
	$(TRAIN) --out runs/debian-cpu --quiet
	$(TRAIN) --out runs/debian-lambda --tensor lambda --lambda local
	./siafu report runs/debian-cpu runs/debian-lambda
	cmp runs/debian-cpu/model.safetensors runs/debian-lambda/model.safetensors
	@echo "$$(grep -o '"lambda_invocations": *[0-9]*' runs/debian-lambda/summary.json | tail -n 1 | grep -o '[0-9]*') invocations of $(FUNCTION) have made the model that the CPU makes, to the byte."

$(DATA)/meta.json: | program
	@mkdir -p $(BUILD)
	scripts/import-packages ./siafu $(DATA)

# Two at a time: tests of unit wait for daemons, deadlines and processes.
test: PARTS = slurm
test: deps
	$(MAKE) --no-print-directory -j2 race-short unit no-cgo cu-test

.PHONY: test-long
test-long: export SIAFU_BIG = 1
test-long:
	$(MAKE) --no-print-directory TIMEOUT=180m test

# Every test in one build, so that each package is compiled and linked once. Those
# under mpirun wait more than they compute: they begin first and run beside the others, one
# package more at a time than there are processors. make lint runs go vet.
# The tests of ranks and kernels take long, and begin before all others.
# Tests that call t.Parallel wait for daemons and deadlines rather than compute: more of them
# run at a time than there are processors.
# A collector that runs rarely saves a tenth of the processor's time, and in tests that make
# many small runs a third.
# Without debug information linking takes a fifth of the time, and without paths what one
# checkout has compiled serves another.
LEAN := -trimpath -ldflags="-s -w"
TIMEOUT ?= 60m
PARALLEL ?= 6
unit: go
	@$(if $(MPI),,echo "mpicc is missing: tests under mpirun left out")
	$(if $(MPI),$(MAKE) --no-print-directory test-programs)
	GOGC=400 scripts/in-memory $(GO) test -p $$(($$(nproc) + 1)) -parallel $(PARALLEL) $(LEAN) -vet=off -timeout $(TIMEOUT) $(TAGS) ./ranks $(if $(MPI),$(MPI_TESTS)) ./kernels ./...

# Programs that tests run, of which go test knows only whether they are as before:
# with new ones those tests are run again, instead of what is kept of the last time.
.PHONY: test-programs
test-programs:
	@mkdir -p $(BUILD)/test/mpi $(BUILD)/fresh/mpi
	@set -e; for program in mpi/siafu mpi/siafu-bench siafu; do \
	  to=$(BUILD)/test/$$program new=$(BUILD)/fresh/$$program tags=; package=.; \
	  case $$program in mpi/*) tags=mpi ;; esac; \
	  case $$program in *-bench) package=./bench/siafu-bench ;; esac; \
	  echo "$(GO) build -buildvcs=false $(LEAN) -tags '$$tags' -o $$to $$package"; \
	  cp $$to $$new 2>/dev/null || true; \
	  $(GO) build -buildvcs=false $(LEAN) -tags "$$tags" -o $$new $$package; \
	  if cmp -s $$new $$to; then rm $$new; else mv $$new $$to; fi; \
	done

# What a static build reports instead of MPI and the NVIDIA driver.
.PHONY: no-cgo
no-cgo: go
	CGO_ENABLED=0 $(GO) test -trimpath -vet=off -run 'NoCgo|Unavailable' ./cuda/driver ./ranks/world/mpi

# Under the race detector arrays are on the Go heap and kernels plain Go, so that
# it sees them. The short form is what workers and ranks share: tasks of an epoch,
# in step and not, halos, servers.
race: go
	$(GO) test -race -timeout 60m ./...

.PHONY: cu-headers
cu-headers:
	@$(CU_HEADERS) || { echo "cuda.h is missing: install a CUDA toolkit, set CUDA_HOME to its folder, or run make deps-cu"; exit 1; }

# The binding of gorgonia.org/cu, with a library that stands in for the driver.
.PHONY: cu-test
cu-test: STANDIN = $(CURDIR)/$(BUILD)/cu-test
cu-test: go
	@$(CU_HEADERS) || { echo "cuda.h is missing: the tests of gorgonia.org/cu are left out (make deps-cu)"; exit 0; }; \
	mkdir -p $(STANDIN); set -ex; \
	$${CC:-cc} -shared -fPIC -o $(STANDIN)/libcuda.so.1 cuda/driver/testdata/fake.c; \
	CGO_CFLAGS="$(CGO_CFLAGS) $(CU_CFLAGS)" CGO_LDFLAGS="$(CGO_LDFLAGS) $(CU_LDFLAGS)" LD_LIBRARY_PATH=$(STANDIN) \
	$(GO) test -trimpath -count 1 -tags cu ./cuda/driver/gorgonia

race-short: go
	scripts/in-memory $(GO) test -race -short $(LEAN) -vet=off ./ranks/schedule ./ranks/params/... ./halo ./halo/refresh
	scripts/in-memory $(GO) test -race -short $(LEAN) -vet=off ./kernels/task -run 'Stream|FirstHalf'
	scripts/in-memory $(GO) test -race -short $(LEAN) -vet=off ./ranks/world/inproc -run 'TestConformance/3|TestL|TestB'
	scripts/in-memory $(GO) test -race -short $(LEAN) -vet=off ./ranks -run 'TestOverlapChangesNothing|TestStaleTasksElsewhere|TestTaskWithoutResult|TestPoliciesWrittenDownAgain'

# The tests in files for builds with MPI.
MPI_TESTS = $(shell grep -rlE '^//go:build mpi' --include=*_test.go . | xargs -n 1 dirname | sort -ru)
mpi-test: go
	$(if $(MPI),$(GO) test $(TAGS) $(MPI_TESTS) -run "^($$(grep -rlE '^//go:build mpi' --include=*_test.go . | xargs grep -hoE '^func (Test|Fuzz)[A-Za-z0-9_]+' | cut -c6- | paste -sd'|'))$$",@echo "mpicc is missing: tests under mpirun left out")

# Some thousand damaged inputs for each decoder, beside the seeds that every test run has;
# "make fuzz FUZZTIME=10m" looks longer.
FUZZTIME ?= 2000x
fuzz: go
	@set -e; for p in $$($(GO) list ./...); do \
	  dir=$${p/#siafu/.}; \
	  for f in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]+' $$dir/*_test.go 2>/dev/null | cut -c6-); do \
	    echo "fuzz $$p $$f"; \
	    $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x $$p; \
	  done; \
	done

accuracy: build
	./siafu bench accuracy --data "$${SIAFU_TESTDATA:?set it to the folder with the raw graphs}"

bench: build
	./siafu bench kernels
	$(GO) test -run '^$$' -bench . ./halo/...

# Without MPI, which the other host may lack; the graph is generated there.
bench-cuda: go
	@mkdir -p $(BUILD)/bench-cuda
	CGO_ENABLED=1 CGO_CFLAGS="-O2 -g" CGO_LDFLAGS="-O2 -g" $(GO) build -trimpath -o $(BUILD)/bench-cuda/ . ./bench/siafu-bench
	cp bench/cuda/run bench/cuda/README.md $(BUILD)/bench-cuda
	@echo "copy $(BUILD)/bench-cuda to a host with a GPU and start run there"

yardstick: build
	./siafu bench kernels --yardstick

# What a machine needs: Go, a C compiler and an MPI, by apt-get as root or with sudo. Slurm is for
# the tests of batch jobs, which are left out without it.
PARTS = slurm
.PHONY: deps
deps:
	@MPICC=$(MPICC) scripts/deps go mpi $(PARTS)
	@scripts/toolchain

# CUDA's headers, without an installation: 774 MB are downloaded, 16 MB stay.
.PHONY: deps-cu
deps-cu:
	scripts/cuda-headers $(BUILD)/cuda

go:
	@scripts/toolchain

fmt:
	gofmt -l -w .

vet: go
	$(GO) vet ./...
	$(if $(MPI),$(GO) vet -tags mpi ./...)

# With the tags of the tests.
.PHONY: lint
lint: go
	$(GO) vet -trimpath $(TAGS) ./...
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "gofmt would change $$files: make fmt"; exit 1; }
	$(GO) tool staticcheck $(TAGS) ./...
	$(GO) run ./internal/testkit/prose README.md CONTRIBUTING.md docs main.go bench cli cuda graph halo internal kernels lambda ranks slurm
	$(GO) run ./internal/testkit/codesize -against size.txt

# The output is size.txt.
.PHONY: size
size: go
	@$(GO) run ./internal/testkit/codesize

.PHONY: dist
dist: go
	scripts/dist

.PHONY: wheel
wheel: go
	scripts/wheel

clean:
	rm -rf siafu siafu-bench $(BUILD)
