package launch

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/fault"
)

// Launchers.
const (
	Mpirun    = "mpirun"
	Srun      = "srun"
	InProcess = "in-process"
)

// place is where ranks are started.
type place struct {
	root     bool
	local    bool   // all ranks are on this host
	sessions string // folder for the session of Open MPI, where local
	cpus     string // per task, as Slurm says; empty elsewhere
	env      []string
}

// find looks the launcher up.
func (o *Options) find() error {
	if o.Launcher == InProcess {
		return nil
	}
	if _, err := exec.LookPath(o.Launcher); err == nil {
		return nil
	}
	if o.Launcher == Srun {
		return fault.New(fault.Missing, "launch", Srun, "it is not on the PATH").
			Then("run this inside a Slurm job, or use --launcher mpirun")
	}
	return fault.New(fault.Missing, "launch", Mpirun, "it is not on the PATH").
		Then("install Open MPI (apt-get install openmpi-bin) or load its module; --in-process runs the ranks in one process")
}

// command returns the whole command line of one attempt.
func (o *Options) command(p place, args []string) []string {
	switch o.Launcher {
	case InProcess:
		return o.inProcess(args)
	case Srun:
		return append(o.srun(p), o.ranks(args)...)
	}
	return append(o.mpirun(p), o.ranks(args)...)
}

// ranks is what each rank executes.
func (o *Options) ranks(args []string) []string {
	line := append(slices.Clone(o.Wrap), o.Program)
	return append(line, args...)
}

func (o *Options) inProcess(args []string) []string {
	line := o.ranks(args)
	if o.Ranks > 0 {
		line = append(line, "--ranks", strconv.Itoa(o.Ranks))
	}
	return line
}

// mpirun lets a rank use all processors of its host, since ranks have threads,
// and makes ranks that wait inside the library give their processor away.
func (o *Options) mpirun(p place) []string {
	line := []string{Mpirun, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"}
	if o.Ranks > 0 {
		line = append(line, "-n", strconv.Itoa(o.Ranks))
	}
	if p.root {
		line = append(line, "--allow-run-as-root")
	}
	if o.Hostfile != "" {
		line = append(line, "--hostfile", o.Hostfile)
	}
	if p.local {
		// A slot is a core to mpirun and a rank may share one. Two jobs that
		// start together would race for the usual session folder.
		line = append(line, "--oversubscribe", "--mca", "orte_tmpdir_base", p.sessions)
	} else {
		// The daemons on other hosts need the shield, too.
		line = append(line, "--mca", "orte_launch_agent", o.Self+" "+ShieldCommand+" orted")
		for _, name := range p.env {
			line = append(line, "-x", name)
		}
	}
	return line
}

// srun passes on what a step no longer inherits from its job (Slurm 22.05), and
// ends the step at the first SIGINT instead of telling how it is doing.
func (o *Options) srun(p place) []string {
	line := []string{Srun, "--mpi=pmix", "--kill-on-bad-exit=1", "--quit-on-interrupt"}
	if o.Ranks > 0 {
		line = append(line, "--ntasks="+strconv.Itoa(o.Ranks))
	}
	if p.cpus != "" {
		line = append(line, "--cpus-per-task="+p.cpus)
	}
	return line
}

// here returns the place that the environment describes.
func (o *Options) here(sessions string) place {
	nodes := os.Getenv("SLURM_JOB_NUM_NODES")
	return place{
		root:  os.Geteuid() == 0,
		local: o.Hostfile == "" && (nodes == "" || nodes == "1"), sessions: sessions,
		cpus: os.Getenv("SLURM_CPUS_PER_TASK"),
		env:  carried(o.environ()),
	}
}

// carried returns the names of the variables that ranks on other hosts need: what
// configures siafu, its threads and the search for its libraries.
func carried(environ []string) []string {
	var names []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "SIAFU_") || slices.Contains([]string{"OMP_NUM_THREADS", "GOMAXPROCS", "LD_LIBRARY_PATH", "PATH"}, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// DefaultRanks returns the number of ranks to start by default: Slurm's tasks,
// the slots of a hostfile (0: mpirun counts them), else this host's processors.
func DefaultRanks(hostfile string) int {
	if n, err := strconv.Atoi(os.Getenv("SLURM_NTASKS")); err == nil && n > 0 {
		return n
	}
	if hostfile != "" {
		return 0
	}
	return runtime.NumCPU()
}
