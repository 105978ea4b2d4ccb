package world

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// Launch has the information from a launcher about this process.
type Launch struct {
	Name       string // name of the launcher: "mpirun", "mpiexec", "srun" or "jsrun"
	Rank, Size int
	OneHost    bool // the launcher has started all ranks on this host; false if unknown
}

// Launched detects from the environment whether a launcher started this process, as one of
// several ranks or as the only one. It needs no MPI library, so that a program without MPI
// can report the problem.
func Launched() (l Launch, ok bool) { return launched(os.Getenv) }

// WaitForRank0 gives rank 0 time to print an error that all ranks have. Other ranks call it before
// they exit silently. A launcher kills all ranks as soon as the first one has ended, and the ranks
// may have no communicator yet. This rank may be killed during the wait.
func (l Launch) WaitForRank0() {
	if l.Rank > 0 {
		signal.Reset(syscall.SIGTERM)
		time.Sleep(time.Second)
	}
}

// launcher lists the environment variables of a launcher. A variable may have several names; the
// first one with a number is used.
type launcher struct {
	name       string
	rank, size []string
	here       string // number of ranks on this host
	hosts      string // number of hosts
	only       string // variable that only this launcher sets; empty: none
}

// launchers are tried in this order. mpirun must come first: inside a Slurm job it sets its own
// variables and inherits those of the job, which do not describe its ranks.
//
// SLURM_PROCID and SLURM_NTASKS, PBS_NODENUM and PBS_TASKNUM, LSB_JOBINDEX and LSB_DJOB_NUMPROC are not
// sufficient, because a batch script has them too, and it is not a rank. SLURM_STEP_NUM_TASKS exists only
// under srun. PMIX_RANK is not sufficient, because there is no corresponding size. PRRTE, the launcher of
// Open MPI 5, also sets Open MPI's variables.
var launchers = [...]launcher{
	// Open MPI
	{name: "mpirun", rank: []string{"OMPI_COMM_WORLD_RANK"}, size: []string{"OMPI_COMM_WORLD_SIZE"}, here: "OMPI_COMM_WORLD_LOCAL_SIZE"},
	// Hydra, the launcher of MPICH and its descendants. In a Slurm job srun starts its daemons, one for each host.
	{name: "mpiexec", rank: []string{"PMI_RANK"}, size: []string{"PMI_SIZE"}, here: "MPI_LOCALNRANKS", only: "MPI_LOCALNRANKS"},
	{name: "srun", rank: []string{"PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, size: []string{"SLURM_STEP_NUM_TASKS"},
		hosts: "SLURM_STEP_NUM_NODES"},
	// LSF's launcher for IBM Spectrum MPI, which also sets Open MPI's variables
	{name: "jsrun", rank: []string{"JSM_NAMESPACE_RANK"}, size: []string{"JSM_NAMESPACE_SIZE"}, here: "JSM_NAMESPACE_LOCAL_SIZE"},
	// another launcher for MPICH, such as Cray's
	{name: "mpiexec", rank: []string{"PMI_RANK"}, size: []string{"PMI_SIZE"}},
}

func launched(getenv func(string) string) (Launch, bool) {
	for _, s := range launchers {
		rank, size := envNumber(getenv, s.rank, -1), envNumber(getenv, s.size, 0)
		if rank >= 0 && rank < size && (s.only == "" || getenv(s.only) != "") {
			one := envNumber(getenv, []string{s.here}, 0) == size || envNumber(getenv, []string{s.hosts}, 0) == 1
			return Launch{Name: s.name, Rank: rank, Size: size, OneHost: one}, true
		}
	}
	return Launch{}, false
}

// envNumber returns the value of the first named variable with a number of at least 0, or absent if
// there is none.
func envNumber(getenv func(string) string, names []string, absent int) int {
	for _, name := range names {
		if v, err := strconv.Atoi(getenv(name)); err == nil && v >= 0 {
			return v
		}
	}
	return absent
}
