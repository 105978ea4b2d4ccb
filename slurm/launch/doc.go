// Package launch starts the ranks of a run under mpirun or srun, or in one
// process, and supervises them: it forwards signals, restarts a crashed run, and
// returns siafu's own exit code.
//
// Launchers handle signals differently. Observed with Open MPI 4.1 and Slurm 22.05:
//
//   - mpirun forwards SIGUSR1 and SIGUSR2. On SIGTERM it kills its ranks after
//     two seconds, and a batch system sends SIGTERM to every process of a job.
//   - srun forwards SIGUSR1 and SIGUSR2 too. On SIGTERM it kills its step at
//     once; a SIGTERM of the batch system reaches the ranks unchanged.
//
// The launcher, and mpirun's daemons on other hosts, therefore run with SIGTERM
// blocked (Shield), and a request to stop is sent through them as SIGUSR2. In the
// ranks, Join turns SIGUSR2 into the SIGTERM that training handles.
//
// A launcher must not outlive siafu launch, because no process could then stop it.
// At the end of siafu launch the kernel sends SIGINT: mpirun, and srun with
// --quit-on-interrupt, then end their ranks. This signal depends on two threads,
// and both must stay alive: the parent thread that started the process, for
// the whole attempt, and the child thread that requested the signal, until its
// execve (Shield).
//
// If all processes are killed at once, none can clean up. The leftovers are in
// folders that differ from those of running processes and of other users (package
// scratch): the launcher's session, which mpirun also holds, and each rank's
// shared memory. Release removes them.
//
// Rank 0 reports its start and its exit code in a status file, because launchers
// confuse the exit codes of ranks that end at different times.
package launch
