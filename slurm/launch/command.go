package launch

import (
	"cmp"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/fault"
	"siafu/ranks/world/mpi"
)

// Launchers.
const (
	Mpirun    = "mpirun"
	Srun      = "srun"
	InProcess = "in-process"
)

// place describes the environment in which ranks are started.
type place struct {
	root     bool
	local    bool     // all ranks are on this host
	sessions string   // folder for the session of Open MPI, if local
	cpus     string   // per task of a Slurm job; empty elsewhere
	env      []string // variables that ranks on other hosts need
	agent    string   // command that starts daemons on other hosts
	slurm    bool     // in a Slurm job
}

// find finds the launcher. It returns a fault if the launcher is not installed or does not suit.
func (o *Options) find() error {
	if o.Launcher == InProcess {
		return nil
	}
	if _, err := exec.LookPath(o.Launcher); err == nil {
		return o.choose()
	}
	if o.Launcher == Srun {
		return fault.New(fault.Missing, "launch", Srun, "it is not on the PATH").
			Then("run this inside a Slurm job, or use --launcher mpirun")
	}
	return fault.New(fault.Missing, "launch", o.Launcher, "it is not on the PATH").
		Then("install Open MPI (apt-get install openmpi-bin) or load its module; --in-process runs the ranks in one process")
}

// command returns the complete command line of one attempt.
func (o *Options) command(p place, args []string) []string {
	rank := slices.Concat(o.Wrap, []string{o.Program}, args) // the command line of each rank
	switch {
	case o.Launcher != InProcess:
		return append(o.dialect.flags(o, p), rank...)
	case o.Ranks > 0:
		rank = append(rank, "--ranks", strconv.Itoa(o.Ranks))
	}
	return rank
}

// mpirun returns the command line of mpirun. It lets a rank use all processors of its host, because
// ranks have threads. Ranks that wait inside the library yield their processor.
func (o *Options) mpirun(p place) []string {
	names := o.dialect.names
	line := []string{o.Launcher, "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"}
	if o.Ranks > 0 {
		line = append(line, "-n", strconv.Itoa(o.Ranks))
	}
	if p.root {
		line = append(line, "--allow-run-as-root")
	}
	if o.Survive {
		line = append(line, "--enable-recovery")
	}
	if o.Hostfile != "" {
		line = append(line, "--hostfile", o.Hostfile)
	}
	if o.agent != "" && !o.Survive {
		// The agent is a file of this host. Daemons of their own session would be no part of the job.
		shell := "plm_" + names.shell
		line = append(line, "--mca", names.prefix+"_leave_session_attached", "1", "--mca", shell+"_agent", o.agent,
			"--mca", shell+"_no_tree_spawn", "1", "--mca", shell+"_num_concurrent", "10000")
	}
	if p.local {
		// mpirun counts one slot per core, but ranks may share a core. Two jobs that start at the
		// same time would race for the default session folder.
		line = append(line, "--oversubscribe", "--mca", names.prefix+"_tmpdir_base", p.sessions)
	} else {
		// The daemons on other hosts need Shield, too.
		line = append(line, "--mca", names.prefix+"_launch_agent", o.Self+" "+ShieldCommand+" "+names.daemon)
		for _, name := range p.env {
			line = append(line, "-x", name)
		}
		if o.Survive {
			line = append(line, o.survivingDaemons(p)...)
		}
	}
	return line
}

// survivingDaemons returns the flags with which mpirun continues after the loss of a host. mpirun ends
// the job if a program that starts a daemon fails. All daemons are started from this host, by Agent,
// which hides later failures. In a Slurm job, each daemon is a step of its own.
func (o *Options) survivingDaemons(p place) []string {
	agent := p.agent
	if p.slurm {
		agent = "srun --overlap --nodes=1 --ntasks=1 --mpi=none --export=ALL --nodelist"
	}
	shell := o.dialect.names.shell
	return []string{
		"--mca", "plm", shell, "--mca", "plm_" + shell + "_no_tree_spawn", "1",
		"--mca", "plm_" + shell + "_agent", o.Self + " " + ShieldCommand + " --agent " + agent,
	}
}

// srun returns the command line of srun. It repeats the processors per task, which a step does not
// inherit from its job since Slurm 22.05. --quit-on-interrupt ends the step at the first SIGINT,
// which would only print its state otherwise.
func (o *Options) srun(p place) []string {
	line := []string{o.Launcher, "--mpi=" + slurmPMI(), "--kill-on-bad-exit=1", "--quit-on-interrupt"}
	if o.Ranks > 0 {
		line = append(line, "--ntasks="+strconv.Itoa(o.Ranks))
	}
	if p.cpus != "" {
		line = append(line, "--cpus-per-task="+p.cpus)
	}
	return line
}

// slurmPMI returns the interface by which Slurm connects the ranks of this program's MPI.
func slurmPMI() string {
	if strings.HasPrefix(mpi.Library(), hydra.name) {
		return "pmi2"
	}
	return "pmix"
}

// here returns the place that the environment describes.
func (o *Options) here(sessions string) place {
	nodes := os.Getenv("SLURM_JOB_NUM_NODES")
	return place{
		root:  os.Geteuid() == 0,
		local: o.Hostfile == "" && (nodes == "" || nodes == "1"), sessions: sessions,
		cpus:  os.Getenv("SLURM_CPUS_PER_TASK"),
		env:   carried(o.environ()),
		agent: cmp.Or(os.Getenv("OMPI_MCA_plm_rsh_agent"), o.agent, "ssh"),
		slurm: o.Hostfile == "" && nodes != "",
	}
}

// carried returns the names of the variables that ranks on other hosts need. They configure siafu,
// its threads and the search paths of its libraries.
func carried(environ []string) []string {
	var names []string
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, "SIAFU_") ||
			slices.Contains([]string{"OMP_NUM_THREADS", "GOMAXPROCS", "LD_LIBRARY_PATH", "PATH"}, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// DefaultRanks returns the default number of ranks: Slurm's tasks, or 0 with a hostfile, so that
// mpirun counts its slots, or the slots of a job of PBS or LSF, or this host's processors.
func DefaultRanks(hostfile string) int {
	if n, err := strconv.Atoi(os.Getenv("SLURM_NTASKS")); err == nil && n > 0 {
		return n
	}
	if hostfile != "" {
		return 0
	}
	return cmp.Or(Allocated(os.Getenv).Ranks(), runtime.NumCPU())
}
