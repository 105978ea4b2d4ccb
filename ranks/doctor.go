package ranks

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/cpu"

	"siafu/cuda/driver"
	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/kernels"
	"siafu/ranks/world"
	"siafu/ranks/world/mpi"
)

// Doctor reports what this machine and this build support. For each missing component it
// prints the remedy. Under a launcher it also reports on the whole world: the view of each
// rank and the links between ranks. The output is key=value lines, or one JSON object with
// a list per first word of the lines. Collective.
func Doctor(asJSON bool, out IO) error {
	found := &doctorReport{out: out.Out, kept: asJSON}
	if _, launched := world.Launched(); !launched {
		if err := doctorHere(found); err != nil {
			return err
		}
		found.add("launcher none", `none has started this process; for several processes start siafu with mpirun, srun or "siafu launch"`)
		return found.end()
	}
	limits := world.Limits{Warn: 10 * time.Second, Abort: time.Minute, Log: func(msg string) { fmt.Fprintln(out.Err, "siafu: "+msg) }}
	return launch(0, limits, out, func(w world.Comm, _ string) error {
		err := doctorWorld(w, found)
		if err == nil && w.Rank() == 0 {
			err = found.end()
		}
		return err
	})
}

// doctorHere reports on this process and its host.
func doctorHere(f *doctorReport) error {
	s, err := inspectRank()
	if err != nil {
		return err
	}
	f.add("siafu", "", "version", Version, "go", runtime.Version(), "os", runtime.GOOS, "arch", runtime.GOARCH)
	f.add("host", "", "name", s.Host, "cpus", s.CPUs, "gomaxprocs", s.Threads, "memory_available_bytes", s.Memory)
	f.add("cpu", "", "avx2", cpu.X86.HasAVX2, "avx512f", cpu.X86.HasAVX512F, "fma", cpu.X86.HasFMA)
	findKernels(f)
	f.add("world", "", "kind", "in-process", "available", true)
	findMPI(f)
	findFunction(f)
	findGPUs(f, gpusHere())
	return nil
}

// findKernels reports the variant that --kernel auto would choose, and why.
func findKernels(f *doctorReport) {
	rates := kernels.Rates()
	facts := []any{"auto", kernels.Best()}
	for _, v := range kernels.Variants() {
		facts = append(facts, v+"_gflops", math.Round(rates[v]))
	}
	f.add("kernels", "", facts...)
}

// Kernels returns the variants of kernels in this build, and those that this machine runs, best first.
func Kernels() (built, usable []string) { return kernels.Compiled(), kernels.Variants() }

func findMPI(f *doctorReport) {
	remedy := ""
	if !mpi.Available() {
		remedy = `this build has no MPI, so only the in-process world works; install libopenmpi-dev and openmpi-bin ` +
			`("make deps") and run "make build"`
	}
	f.add("world", remedy, "kind", "mpi", "available", mpi.Available(), "library", mpi.Library(), "file", mpi.File())
}

// rankInfo is one rank's information on its host and itself.
type rankInfo struct {
	Host    string
	CPUs    int // available to the rank
	Threads int
	Memory  int64 // available bytes
	GPUs    int
	Version string
	Go      string
}

func inspectRank() (rankInfo, error) {
	name, err := os.Hostname()
	if err != nil {
		return rankInfo{}, fault.System("doctor", "", err)
	}
	found, _ := driver.List() // findGPUs reports errors
	return rankInfo{name, runtime.NumCPU(), runtime.GOMAXPROCS(0), host.AvailableMemory(), len(found), Version, runtime.Version()}, nil
}

// doctorWorld reports on all ranks; rank 0 prints. Collective.
func doctorWorld(c world.Comm, f *doctorReport) error {
	mine, err := inspectRank()
	if err != nil {
		return err
	}
	all, err := world.GatherValues(c, 0, mine)
	if err != nil {
		return err
	}
	table, err := world.MeasureLinks(c)
	if err != nil || c.Rank() != 0 {
		return err
	}
	if err := doctorHere(f); err != nil {
		return err
	}
	l, _ := world.Launched()
	f.add("launcher", "", "name", l.Name, "ranks", len(all), "hosts", len(ranksByHost(all)))
	for r, s := range all {
		f.add("", "", "rank", r, "host", s.Host, "cpus", s.CPUs, "gomaxprocs", s.Threads, "memory_available_bytes", s.Memory,
			"gpus", s.GPUs, "version", s.Version, "go", s.Go)
	}
	findLinks(f, table)
	for _, wrong := range diagnose(all) {
		f.add("warning", wrong)
	}
	return nil
}

// allPairs is the maximal number of ranks for which every pair is printed.
const allPairs = 8

func findLinks(f *doctorReport, t *world.Links) {
	print := func(name string, p, q int) {
		latency, bandwidth := t.At(p, q)
		f.add(name, "", "a", p, "b", q, "latency_us", math.Round(latency*1e7)/10, "bandwidth_mb_s", math.Round(bandwidth/1e6))
	}
	for p := 0; p < t.Size && t.Size <= allPairs; p++ {
		for q := p + 1; q < t.Size; q++ {
			print("link", p, q)
		}
	}
	if p, q, ok := t.Slowest(); ok {
		print("slowest_link", p, q)
	}
}

func ranksByHost(all []rankInfo) map[string][]int {
	hosts := map[string][]int{}
	for r, s := range all {
		hosts[s.Host] = append(hosts[s.Host], r)
	}
	return hosts
}

// diagnose returns the problems of a world, one sentence each.
func diagnose(all []rankInfo) []string {
	var wrong []string
	for r, s := range all {
		if s.Version != all[0].Version {
			wrong = append(wrong, fmt.Sprintf("rank %d on %s is siafu %s and rank 0 is %s: build once and copy it to all hosts", r,
				s.Host, s.Version, all[0].Version))
		}
		// The first rank of a host reports on it.
		here := ranksByHost(all)[s.Host]
		if here[0] == r && s.CPUs < len(here) {
			wrong = append(wrong, fmt.Sprintf("rank %d may run on %d processors of %s, where there are %d ranks: mpirun ties ranks to "+
				"cores without --bind-to none; else start fewer", r, s.CPUs, s.Host, len(here)))
		}
	}
	return wrong
}
