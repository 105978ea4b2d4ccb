# make run     install what is missing, build, train on this machine's package graph
# make run-lambda  the same graph with tensor work in local functions, to the CPU's model
# make test    install what is missing, run every test, also under mpirun
# make test-long  the same with the long variants, which take minutes each and up to 16 GB
# make race    every test under the race detector, which takes some ten times as long
# make build   ./siafu, with MPI where an MPI library is installed, and the function
# make function  build/lambda/bootstrap, the function of --tensor lambda, one static file;
#              LAMBDA_ARCH=arm64 builds build/lambda/arm64/bootstrap, for that architecture
# make bench   time kernels and exchanges on this machine
# make bench-cuda  build/bench-cuda, a folder to measure a GPU with on a host without Go
# make yardstick  the same kernels in turns with a C loop and OpenBLAS
# make accuracy  the README's table, on the graphs in $SIAFU_TESTDATA
# make dist    build/dist: archives and Debian packages of this tree, and their checksums
# make lint    gofmt and staticcheck, which go.mod pins
# make fmt vet the usual
SHELL := /bin/bash
.DEFAULT_GOAL := build

GO ?= go
BUILD := build
DATA  := $(BUILD)/debian
RANKS ?= 4

# Without an MPI compiler the program is built without MPI: it then trains in
# an in-process world only, and "siafu doctor" says so.
MPI  := $(shell command -v mpicc 2>/dev/null)
# With LAMBDA=1 it can have tensor work done in AWS Lambda, with CUDA=1 on GPUs: the
# driver is looked for when a run asks for it, and nothing of CUDA is needed to build.
empty :=
comma := ,
TAGS := $(addprefix -tags ,$(subst $(empty) $(empty),$(comma),$(strip $(if $(MPI),mpi) $(if $(LAMBDA),lambda) $(if $(CUDA),cuda))))
# The flags of this machine's MPI, wherever it lies.
export CGO_CFLAGS := -O2 -g $(if $(MPI),$(shell mpicc --showme:compile 2>/dev/null))
export CGO_LDFLAGS := -O2 -g $(if $(MPI),$(shell mpicc --showme:link 2>/dev/null))
LAUNCH := ./siafu launch -n $(RANKS) $(if $(MPI),,--in-process)

.PHONY: build function run run-lambda test unit race race-short mpi-test fuzz accuracy bench bench-cuda yardstick deps go fmt vet clean

build: go function
	$(GO) build $(TAGS) -o siafu .

# The function of this machine's architecture has no folder of its own.
FUNCTION = $(BUILD)/lambda/$(addsuffix /,$(filter-out $(shell $(GO) env GOHOSTARCH),$(LAMBDA_ARCH)))bootstrap
TRIM = -trimpath
function: go
	CGO_ENABLED=0 GOARCH=$(or $(LAMBDA_ARCH),$(shell $(GO) env GOHOSTARCH)) $(GO) build $(TRIM) -tags lambda.norpc -ldflags "-s -w" -o $(FUNCTION) ./lambda/function/bootstrap

# The second make sees the compiler that the first one may have installed.
run: deps
	$(MAKE) --no-print-directory train

.PHONY: train
train: build $(DATA)/meta.json
	$(LAUNCH) train $(DATA) --hidden 64 --epochs 100 --lr 0.03 --dropout 0.5 --input-dropout 0 --weight-decay 0 --out runs/debian-gcn --force
	./siafu train $(DATA) --model mlp --layers 1 --epochs 100 --lr 0.05 --dropout 0 --weight-decay 0 --out runs/debian-linear --force --quiet
	./siafu predict runs/debian-gcn $(DATA)
	./siafu report runs/debian-gcn runs/debian-linear

run-lambda: deps
	$(MAKE) --no-print-directory LAMBDA=1 train-lambda

.PHONY: train-lambda
train-lambda: TRAIN = ./siafu train $(DATA) --hidden 64 --epochs 5 --lr 0.03 --dropout 0.5 --input-dropout 0 --weight-decay 0 --force
train-lambda: build $(DATA)/meta.json
	$(TRAIN) --out runs/debian-cpu --quiet
	$(TRAIN) --out runs/debian-lambda --tensor lambda --lambda local
	./siafu report runs/debian-cpu runs/debian-lambda
	cmp runs/debian-cpu/model.safetensors runs/debian-lambda/model.safetensors
	@echo "$$(grep -o '"lambda_invocations": *[0-9]*' runs/debian-lambda/summary.json | tail -n 1 | grep -o '[0-9]*') invocations of $(FUNCTION) have made the model that the CPU makes, to the byte."

$(DATA)/meta.json: | build
	@mkdir -p $(BUILD)
	scripts/import-packages ./siafu $(DATA)

test: deps deps-slurm
	$(MAKE) --no-print-directory unit stubs race-short

.PHONY: test-long
test-long: export SIAFU_BIG = 1
test-long:
	$(MAKE) --no-print-directory TIMEOUT=60m test

# Every test in one build with everything that a build can have, so that each package
# is compiled, vetted and linked once. Those under mpirun wait more than they compute:
# they begin first and run beside the others, one package more at a time than there are
# processors. go vet looks at more than go test would.
# The tests of ranks take longest, and begin before all others.
EVERYTHING := -tags lambda,cuda$(if $(MPI),$(comma)mpi)
TIMEOUT ?= 15m
unit: go
	@$(if $(MPI),,echo "mpicc is missing: tests under mpirun left out")
	$(GO) vet $(EVERYTHING) ./...
	$(if $(MPI),$(MAKE) --no-print-directory test-programs)
	scripts/in-memory $(GO) test -p $$(($$(nproc) + 1)) -vet=off -timeout $(TIMEOUT) $(EVERYTHING) ./ranks $(if $(MPI),$(MPI_TESTS)) ./...

# Programs that tests run, of which go test knows only whether they are as before:
# with new ones those tests are run again, instead of what is kept of the last time.
.PHONY: test-programs
test-programs:
	@mkdir -p $(BUILD)/test $(BUILD)/fresh
	@set -e; for tags in mpi lambda,mpi ""; do \
	  to=$(BUILD)/test/siafu$${tags:+-$${tags/,/-}} new=$(BUILD)/fresh/siafu$${tags:+-$${tags/,/-}}; \
	  echo "$(GO) build -buildvcs=false -tags '$$tags' -o $$to"; \
	  cp $$to $$new 2>/dev/null || true; \
	  $(GO) build -buildvcs=false -tags "$$tags" -o $$new .; \
	  if cmp -s $$new $$to; then rm $$new; else mv $$new $$to; fi; \
	done

# The tests in files for builds that lack something, and those of what is said then.
WITHOUT := '^//go:build !(mpi|lambda|cuda)'
.PHONY: stubs
stubs: go
	$(GO) vet . $(SLIM)
	$(GO) test -vet=off $(SLIM) -run "^($$(grep -lrE $(WITHOUT) --include=*_test.go . | xargs grep -hoE '^func Test[A-Za-z0-9_]+' | cut -c6- | paste -sd'|'))$$|NoGPU|DoctorOf"
SLIM = $(shell grep -lrE $(WITHOUT) --include=*_test.go . | xargs -n 1 dirname | sort -u)

# Under the race detector arrays are on the Go heap and kernels plain Go, so that
# it sees them. The short form is what workers and ranks share: tasks of an epoch,
# in step and not, halos, servers.
race: go
	$(GO) test -race -timeout 60m ./...

race-short: go
	scripts/in-memory $(GO) test -race -short -vet=off ./ranks/schedule ./ranks/params/... ./halo ./halo/refresh
	scripts/in-memory $(GO) test -race -short -vet=off ./kernels/task -run 'Stream|FirstHalf'
	scripts/in-memory $(GO) test -race -short -vet=off ./ranks/world/inproc -run 'TestConformance/3|TestL|TestB'
	scripts/in-memory $(GO) test -race -short -vet=off ./ranks -run 'TestOverlapChangesNothing|TestStaleTasksElsewhere|TestTaskWithoutResult|TestPoliciesWrittenDownAgain'

# The tests in files for builds with MPI.
MPI_TESTS = $(shell grep -rlE '^//go:build mpi' --include=*_test.go . | xargs -n 1 dirname | sort -ru)
mpi-test: go
	$(if $(MPI),$(GO) test $(EVERYTHING) $(MPI_TESTS) -run "^($$(grep -rlE '^//go:build mpi' --include=*_test.go . | xargs grep -hoE '^func (Test|Fuzz)[A-Za-z0-9_]+' | cut -c6- | paste -sd'|'))$$",@echo "mpicc is missing: tests under mpirun left out")

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
	CGO_ENABLED=1 CGO_CFLAGS="-O2 -g" CGO_LDFLAGS="-O2 -g" $(GO) build -trimpath -tags cuda -o $(BUILD)/bench-cuda/siafu .
	cp bench/cuda/run bench/cuda/README.md $(BUILD)/bench-cuda
	@echo "copy $(BUILD)/bench-cuda to a host with a GPU and start run there"

yardstick: build
	./siafu bench kernels --yardstick

# What a machine needs: a C compiler and Open MPI, and the package lists that
# "make run" imports. Installed as root or with sudo; otherwise the line to
# type is printed and everything goes on without MPI.
deps: go
	@command -v apt-get >/dev/null || { echo "No apt-get here: install a C compiler and Open MPI with headers yourself."; exit 0; }; \
	missing=; \
	command -v gcc >/dev/null || missing="$$missing gcc libc6-dev"; \
	command -v mpicc >/dev/null && [ -e /usr/lib/$$(uname -m)-linux-gnu/openmpi/include/mpi.h ] || missing="$$missing libopenmpi-dev"; \
	command -v mpirun >/dev/null || missing="$$missing openmpi-bin"; \
	lists=$$(apt-cache dumpavail 2>/dev/null | head -c 1 | wc -c); \
	if [ -z "$$missing" ] && [ "$$lists" != 0 ]; then exit 0; fi; \
	sudo=; [ "$$(id -u)" = 0 ] || sudo="sudo -n"; \
	line="apt-get update && apt-get install -y --no-install-recommends$$missing"; \
	[ -n "$$missing" ] || line="apt-get update"; \
	echo "$$line"; \
	$$sudo true 2>/dev/null && $$sudo bash -c "$${line//apt-get/scripts/apt-get}" || \
	  { echo "Could not install. As root, type: $$line"; exit 1; }

# Slurm, for the tests of batch jobs, which are left out without it and where
# the user is not root.
.PHONY: deps-slurm
deps-slurm: deps
	@[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null || exit 0; \
	command -v slurmd >/dev/null && command -v munged >/dev/null && exit 0; \
	scripts/apt-get install -y --no-install-recommends slurm-wlm munge || \
	  echo "Slurm could not be installed: the tests of batch jobs are left out"

go:
	@command -v $(GO) >/dev/null || { echo "Go 1.26 or later is needed: https://go.dev/dl"; exit 1; }
	@$(GO) version | grep -qE 'go1\.(2[6-9]|[3-9][0-9])' || { echo "Go 1.26 or later is needed, this is $$($(GO) version)"; exit 1; }

fmt:
	gofmt -l -w .

vet: go
	$(GO) vet ./...
	$(if $(MPI),$(GO) vet -tags mpi ./...)

# Of one build with everything, as the tests are.
.PHONY: lint
lint: go
	@files=$$(gofmt -l .); [ -z "$$files" ] || { echo "gofmt would change $$files: make fmt"; exit 1; }
	$(GO) tool staticcheck $(EVERYTHING) ./...

.PHONY: dist
dist: go
	scripts/dist

clean:
	rm -rf siafu $(BUILD)
