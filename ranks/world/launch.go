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
	Name       string // name of the launcher: "mpirun", "mpiexec" or "srun"
	Rank, Size int
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
}

// launchers are tried in this order. mpirun must come first: inside a Slurm job it sets its own
// variables and inherits those of the job, which do not describe its ranks.
//
// SLURM_PROCID and SLURM_NTASKS are not sufficient, because a batch script has them too, and it is
// not a rank. SLURM_STEP_NUM_TASKS exists only under srun. PMIX_RANK is not sufficient, because
// there is no corresponding size. PRRTE, the launcher of Open MPI 5, also sets Open MPI's variables.
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
