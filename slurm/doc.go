// Package slurm writes batch scripts for Slurm, PBS and LSF, submits them and reports the
// state of their runs. Package launch starts the ranks inside such a job. A scheduler has
// what differs between the batch systems.
//
// The script is the only interface: a user can read it, edit it and submit it
// again. Its rules:
//
//   - 120 seconds (--grace) before the time limit Slurm sends USR1 to the
//     script alone, at preemption TERM to all processes. On either signal training
//     finishes its epoch, saves and ends with exit code 75. In LSF, USR1 goes to all
//     processes, and in PBS a timer of the script sends URG.
//   - On exit code 75 the script requeues the job, which later continues where it
//     stopped; in PBS it submits itself again. The script does not requeue a job that
//     the batch system requeued or that was cancelled.
//   - The exit code is siafu's, so an unfinished run never looks finished.
//
// Next to each run folder RUN are RUN.sbatch, RUN.pbs or RUN.lsf, the script; RUN.job, a
// Record of the submission; RUN.job.next, the job of PBS that continues the run; and
// RUN-JOBID.out, the output of the job. Training owns the run folder itself.
//
// A Grid has the settings of a sweep: of a job array, or of a Sweep, which trains without Slurm.
package slurm
