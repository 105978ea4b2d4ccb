package ranks

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"golang.org/x/sys/cpu"

	"siafu/graph/fault"
	"siafu/kernels"
	"siafu/ranks/mpi"
	"siafu/ranks/world"
)

// Doctor says what this machine and this build can do, and what is missing
// with its remedy. Lines are key=value.
func Doctor(w io.Writer) error {
	host, err := os.Hostname()
	if err != nil {
		return fault.System("doctor", "", err)
	}
	fmt.Fprintf(w, "siafu version=%s go=%s os=%s arch=%s\n", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(w, "host name=%s cpus=%d gomaxprocs=%d memory_available_bytes=%d\n",
		host, runtime.NumCPU(), runtime.GOMAXPROCS(0), availableMemory())
	fmt.Fprintf(w, "cpu avx2=%t avx512f=%t fma=%t\n", cpu.X86.HasAVX2, cpu.X86.HasAVX512F, cpu.X86.HasFMA)
	kernelLine(w)
	fmt.Fprintf(w, "world kind=in-process available=true\n")
	mpiLine(w)
	fmt.Fprintf(w, "tensor cpu=true cuda=false lambda=false: this version computes on the CPU only\n")
	return launchLine(w)
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

// launchLine says what a launcher told this process.
func launchLine(w io.Writer) error {
	l, ok := world.Launched()
	if !ok {
		fmt.Fprintf(w, "launcher none: start with mpirun or srun for several processes\n")
		return nil
	}
	fmt.Fprintf(w, "launcher name=%s rank=%d size=%d local_rank=%d local_size=%d\n", l.Name, l.Rank, l.Size, l.LocalRank, l.LocalSize)
	if l.LocalSize > 1 && runtime.NumCPU() < l.LocalSize {
		fmt.Fprintf(w, "warning: %d ranks here see %d processors; with mpirun use --bind-to none\n", l.LocalSize, runtime.NumCPU())
	}
	return nil
}
