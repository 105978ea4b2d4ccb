// Package slurm writes batch scripts, submits them and says how their runs are
// doing. Package launch starts the ranks inside such a job.
//
// A script is all there is: it can be read, edited and submitted again by
// hand. What it holds to:
//
//   - 120 seconds (--grace) before the time limit Slurm sends USR1 to the
//     script alone, at preemption TERM to everything. Either makes training
//     finish its epoch, save and end with exit code 75.
//   - With 75 the job goes back to the queue and later on where it stopped. A
//     job that Slurm itself has queued again, or that was cancelled, is left
//     alone.
//   - The exit code is siafu's, so that an unfinished run never looks finished.
//
// Beside each run folder RUN lie RUN.sbatch, the script; RUN.job, a Record of
// what was submitted; and RUN-JOBID.out, what the job printed. The run folder
// itself belongs to training.
package slurm
