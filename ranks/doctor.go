package ranks

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/cpu"

	"siafu/cuda/driver"
	"siafu/graph/fault"
	"siafu/kernels"
	"siafu/ranks/host"
	"siafu/ranks/world"
	"siafu/ranks/world/link"
	"siafu/ranks/world/mpi"
)

// Doctor says what this machine and this build can do, and what is missing
// with its remedy. Under a launcher it says so of the whole world: what each
// rank sees, and what lies between them. Lines are key=value. Collective.
func Doctor(out IO) error {
	if _, launched := world.Launched(); !launched {
		if err := doctorHere(out.Out); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out.Out, "launcher none: start with mpirun, srun or \"siafu launch\" for several processes\n")
		return err
	}
	limits := world.Limits{Warn: 10 * time.Second, Abort: time.Minute, Log: func(msg string) { fmt.Fprintln(out.Err, "siafu: "+msg) }}
	return launch(0, limits, out, func(w world.Comm, _ string) error { return doctorWorld(w, out.Out) })
}

// doctorHere is about this process and its host.
func doctorHere(w io.Writer) error {
	s, err := see()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "siafu version=%s go=%s os=%s arch=%s\n", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(w, "host name=%s cpus=%d gomaxprocs=%d memory_available_bytes=%d\n", s.Host, s.CPUs, s.Threads, s.Memory)
	fmt.Fprintf(w, "cpu avx2=%t avx512f=%t fma=%t\n", cpu.X86.HasAVX2, cpu.X86.HasAVX512F, cpu.X86.HasFMA)
	kernelLine(w)
	fmt.Fprintf(w, "world kind=in-process available=true\n")
	mpiLine(w)
	functionLine(w)
	gpuLines(w, gpusHere())
	return nil
}

// kernelLine says which variant --kernel auto would pick, and why.
func kernelLine(w io.Writer) {
	best, rates := kernels.Fastest()
	fmt.Fprintf(w, "kernels auto=%s", best)
	for _, v := range kernels.Variants() {
		fmt.Fprintf(w, " %s_gflops=%.0f", v, rates[v])
	}
	fmt.Fprintln(w)
}

func mpiLine(w io.Writer) {
	if mpi.Available() {
		fmt.Fprintf(w, "world kind=mpi available=true\n")
		return
	}
	fmt.Fprintf(w, "world kind=mpi available=false: this build has no MPI, so only the in-process world works; install libopenmpi-dev and openmpi-bin (\"make deps\") and run \"make build\"\n")
}

// sight is what one rank sees of its host and of itself.
type sight struct {
	Host    string
	CPUs    int // that it may run on
	Threads int
	Memory  int64 // available bytes
	GPUs    int
	Version string
	Go      string
}

func see() (sight, error) {
	name, err := os.Hostname()
	if err != nil {
		return sight{}, fault.System("doctor", "", err)
	}
	found, _ := driver.List() // gpuLines says why there are none
	return sight{name, runtime.NumCPU(), runtime.GOMAXPROCS(0), host.AvailableMemory(), len(found), Version, runtime.Version()}, nil
}

// doctorWorld is about all ranks; rank 0 prints. Collective.
func doctorWorld(c world.Comm, w io.Writer) error {
	mine, err := see()
	if err != nil {
		return err
	}
	all, err := world.GatherValues(c, 0, mine)
	if err != nil {
		return err
	}
	table, err := link.Measure(c)
	if err != nil || c.Rank() != 0 {
		return err
	}
	if err := doctorHere(w); err != nil {
		return err
	}
	l, _ := world.Launched()
	fmt.Fprintf(w, "launcher name=%s ranks=%d hosts=%d\n", l.Name, len(all), len(ranksByHost(all)))
	for r, s := range all {
		fmt.Fprintf(w, "rank=%d host=%s cpus=%d gomaxprocs=%d memory_available_bytes=%d gpus=%d version=%s go=%s\n",
			r, s.Host, s.CPUs, s.Threads, s.Memory, s.GPUs, s.Version, s.Go)
	}
	linkLines(w, table)
	for _, wrong := range diagnose(all) {
		fmt.Fprintf(w, "warning: %s\n", wrong)
	}
	return nil
}

// allPairs bounds the ranks of a world of which every pair is printed.
const allPairs = 8

func linkLines(w io.Writer, t *link.Table) {
	print := func(name string, p, q int) {
		latency, bandwidth := t.At(p, q)
		fmt.Fprintf(w, "%s a=%d b=%d latency_us=%.1f bandwidth_mb_s=%.0f\n", name, p, q, latency*1e6, bandwidth/1e6)
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

// ranksByHost lists the ranks of each host.
func ranksByHost(all []sight) map[string][]int {
	hosts := map[string][]int{}
	for r, s := range all {
		hosts[s.Host] = append(hosts[s.Host], r)
	}
	return hosts
}

// diagnose is what is wrong with a world, a sentence each.
func diagnose(all []sight) []string {
	var wrong []string
	for r, s := range all {
		if s.Version != all[0].Version {
			wrong = append(wrong, fmt.Sprintf("rank %d on %s is siafu %s and rank 0 is %s: build once and copy it to all hosts", r, s.Host, s.Version, all[0].Version))
		}
		// The first rank of a host speaks for it.
		here := ranksByHost(all)[s.Host]
		if here[0] == r && s.CPUs < len(here) {
			wrong = append(wrong, fmt.Sprintf("rank %d may run on %d processors of %s, where there are %d ranks: mpirun ties ranks to cores without --bind-to none; else start fewer", r, s.CPUs, s.Host, len(here)))
		}
	}
	return wrong
}
