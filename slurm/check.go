package slurm

import (
	"fmt"
	"strconv"

	"siafu/slurm/launch"
)

// Check compares the resources of this job with its world, and returns a sentence for
// each probable mistake. size is the number of ranks in the world, cpus the number of
// processors that this rank may run on. Outside of a job it returns nothing.
func Check(getenv func(string) string, size, cpus int) []string {
	if getenv("SLURM_JOB_ID") == "" {
		a := launch.Allocated(getenv)
		if n := a.Ranks(); len(a.Hosts) > 1 && n > size {
			return []string{fmt.Sprintf("%s gave this job slots for %d ranks on %d hosts, but the world has %d: "+
				"start siafu with siafu launch", a.Scheduler, n, len(a.Hosts), size)}
		}
		return nil
	}
	var said []string
	if getenv("SLURM_STEP_NUM_TASKS") != "" && getenv("OMPI_COMM_WORLD_SIZE") == "" &&
		getenv("PMIX_RANK")+getenv("PMI_RANK") == "" && size > 1 {
		said = append(said, "srun did not connect its tasks: if MPI does not start, use srun --mpi=pmix if \"srun --mpi=list\" lists it, "+
			"or siafu launch, which starts mpirun")
	}
	if tasks := number(getenv("SLURM_NTASKS")); tasks > 1 && size == 1 {
		said = append(said, fmt.Sprintf(
			"Slurm gave this job %d tasks, but the world has one rank: start siafu with mpirun, srun --mpi=pmix or siafu launch", tasks))
	} else if tasks > size {
		said = append(said, fmt.Sprintf("Slurm gave this job %d tasks, but the world has %d ranks: the other tasks are idle", tasks, size))
	}
	if per := number(getenv("SLURM_CPUS_PER_TASK")); per > cpus {
		said = append(said, fmt.Sprintf("Slurm gave each task %d processors, but this rank may run on %d: with mpirun use --bind-to none, "+
			"with srun --cpus-per-task=%d", per, cpus, per))
	}
	return said
}

// number parses a positive number, else returns 0.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
