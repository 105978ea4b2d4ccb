// Package launch starts the ranks of a run under mpirun or srun, or in one
// process, and watches over them: it hands on signals, restarts a run that
// crashed, and returns the exit code that siafu itself ended with.
//
// A launcher stands in the way of signals, and each in its own way. What was
// found with Open MPI 4.1 and Slurm 22.05:
//
//   - mpirun hands on SIGUSR1 and SIGUSR2. On SIGTERM it kills its ranks after
//     two seconds, and a batch system sends SIGTERM to every process of a job.
//   - srun hands on SIGUSR1 and SIGUSR2 too. On SIGTERM it kills its step at
//     once; a SIGTERM of the batch system reaches the ranks as it is.
//
// So the launcher, and mpirun's daemons on other hosts, run with SIGTERM blocked
// (Shield), and a request to stop travels through them as SIGUSR2. On the side
// of the ranks Join turns SIGUSR2 into the SIGTERM that training knows.
//
// Rank 0 says in a status file when it is there and what it ended with:
// launchers mix up the exit codes of ranks that end at different times.
package launch
