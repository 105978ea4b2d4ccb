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
	Name       string // the launcher, "mpirun", "mpiexec", "srun"
	Rank, Size int
}

// Launched detects from the environment whether a launcher started this process, as one of
// several ranks or as the only one. It needs no MPI library, so that a program without MPI
// can report the problem.
func Launched() (l Launch, ok bool) { return launched(os.Getenv) }

// WaitForRank0 gives rank 0 time to print an error that all ranks have; other ranks call it
// before they exit silently. A launcher kills all ranks as soon as the first has ended, and
// there may be no communicator yet to wait with. The rank may be killed meanwhile.
func (l Launch) WaitForRank0() {
	if l.Rank > 0 {
		signal.Reset(syscall.SIGTERM)
		time.Sleep(time.Second)
	}
}

// launcher is one dialect of the environment. A variable may have several
// spellings; the first one that holds a number counts.
type launcher struct {
	name       string
	rank, size []string
}

// launchers are tried in this order: mpirun inside a Slurm job sets its own
// variables and inherits those of the job, which describe another thing.
//
// SLURM_PROCID and SLURM_NTASKS alone do not count: a batch script has them too, and it is not
// a rank. SLURM_STEP_NUM_TASKS exists only under srun. PMIX_RANK does not count either,
// because it has no size. Open MPI's variables are also set by PRRTE, the launcher of Open MPI
// 5.
var launchers = [...]launcher{
	{"mpirun", []string{"OMPI_COMM_WORLD_RANK"}, []string{"OMPI_COMM_WORLD_SIZE"}}, // Open MPI
	{"srun", []string{"PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, []string{"SLURM_STEP_NUM_TASKS"}},
	{"mpiexec", []string{"PMI_RANK"}, []string{"PMI_SIZE"}}, // MPICH and its descendants
}

func launched(getenv func(string) string) (Launch, bool) {
	for _, s := range launchers {
		rank, size := envNumber(getenv, s.rank, -1), envNumber(getenv, s.size, 0)
		if rank >= 0 && rank < size {
			return Launch{Name: s.name, Rank: rank, Size: size}, true
		}
	}
	return Launch{}, false
}

// envNumber returns the value of the first named variable with a number of 0 or more, else
// absent.
func envNumber(getenv func(string) string, names []string, absent int) int {
	for _, name := range names {
		if v, err := strconv.Atoi(getenv(name)); err == nil && v >= 0 {
			return v
		}
	}
	return absent
}
