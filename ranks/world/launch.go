package world

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Launch is what a launcher told this process about itself.
type Launch struct {
	Name       string // the launcher, "mpirun", "mpiexec", "srun"
	Rank, Size int
	// LocalRank numbers the ranks of one host, LocalSize counts them; -1 and 0
	// where the launcher does not say.
	LocalRank, LocalSize int
}

// Launched detects from the environment whether a launcher started this
// process as one of several ranks (or as the only one). It needs no MPI
// library, so that a program built without one can say what is wrong.
func Launched() (l Launch, ok bool) { return launched(os.Getenv) }

// LetSpeak gives rank 0 time to say what is wrong on every rank; other ranks
// call it before they end in silence. A launcher kills all ranks as soon as the
// first has ended, and there may be no communicator yet to wait with. Nothing
// keeps such a rank from being killed meanwhile.
func (l Launch) LetSpeak() {
	if l.Rank > 0 {
		signal.Reset(syscall.SIGTERM)
		time.Sleep(time.Second)
	}
}

// launcher is one dialect of the environment. A variable may have several
// spellings; the first one that holds a number counts.
type launcher struct {
	name                             string
	rank, size, localRank, localSize []string
}

// launchers are tried in this order: mpirun inside a Slurm job sets its own
// variables and inherits those of the job, which describe another thing.
//
// SLURM_PROCID and SLURM_NTASKS alone do not count: a batch script has them
// too, and it is no rank. SLURM_STEP_NUM_TASKS exists only under srun. The
// same goes for PMIX_RANK, which carries no size. Open MPI's variables are also
// set by PRRTE, the launcher of Open MPI 5.
var launchers = [...]launcher{
	{"mpirun", // Open MPI
		[]string{"OMPI_COMM_WORLD_RANK"}, []string{"OMPI_COMM_WORLD_SIZE"},
		[]string{"OMPI_COMM_WORLD_LOCAL_RANK"}, []string{"OMPI_COMM_WORLD_LOCAL_SIZE"}},
	{"srun",
		[]string{"PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, []string{"SLURM_STEP_NUM_TASKS"},
		[]string{"SLURM_LOCALID"}, nil},
	{"mpiexec", // MPICH and its descendants
		[]string{"PMI_RANK"}, []string{"PMI_SIZE"},
		[]string{"MPI_LOCALRANKID"}, []string{"MPI_LOCALNRANKS"}},
}

func launched(getenv func(string) string) (Launch, bool) {
	for _, s := range launchers {
		rank, size := number0(getenv, s.rank, -1), number0(getenv, s.size, 0)
		if rank < 0 || rank >= size {
			continue
		}
		l := Launch{
			Name: s.name, Rank: rank, Size: size,
			LocalRank: number0(getenv, s.localRank, -1),
			LocalSize: number0(getenv, s.localSize, 0),
		}
		if s.name == "srun" {
			node := number0(getenv, []string{"SLURM_NODEID"}, -1)
			l.LocalSize = tasksOnNode(getenv("SLURM_STEP_TASKS_PER_NODE"), node)
		}
		return l, true
	}
	return Launch{}, false
}

// number0 is the first of the named variables that holds a number of 0 or
// more, else absent.
func number0(getenv func(string) string, names []string, absent int) int {
	for _, name := range names {
		if v, err := strconv.Atoi(getenv(name)); err == nil && v >= 0 {
			return v
		}
	}
	return absent
}

// tasksOnNode reads Slurm's list of tasks a node, "4(x2),3" for nodes with 4,
// 4 and 3 tasks; 0 where it does not say.
func tasksOnNode(list string, node int) int {
	for _, item := range strings.Split(list, ",") {
		count, repeat, repeated := strings.Cut(item, "(x")
		tasks, err := strconv.Atoi(count)
		nodes := 1
		if err == nil && repeated {
			nodes, err = strconv.Atoi(strings.TrimSuffix(repeat, ")"))
		}
		if err != nil || node < 0 {
			return 0
		}
		if node < nodes {
			return tasks
		}
		node -= nodes
	}
	return 0
}
