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
// A launcher must not outlive siafu launch, which nobody could stop it through
// any more. The kernel sends it SIGINT then: mpirun, and srun with
// --quit-on-interrupt, end their ranks at that. Such a signal belongs to two
// threads, and both are kept: that of the parent which started the process, for
// the whole of an attempt, and that of the child which asked for it, up to its
// execve (Shield).
//
// Where everything is killed at once, the launcher too, nobody can tidy up. What
// would stay lies in folders that can be told from those of the living and from
// those of others (package scratch): the launcher's session, which mpirun holds
// as well, and each rank's shared memory. Release removes them.
//
// Rank 0 says in a status file when it is there and what it ended with:
// launchers mix up the exit codes of ranks that end at different times.
package launch
