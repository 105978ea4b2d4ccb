// Package inject brings about a real fault at a chosen moment of a run, for
// tests of what becomes of the others.
//
// The environment variable SIAFU_FAULT chooses it:
//
//	SIAFU_FAULT=RANK:MOMENT:EPOCH:KIND:MARK
//
// The fault strikes rank RANK of the world, or part RANK with --parts, the first time
// that it comes to MOMENT in epoch EPOCH or later. MARK is a file that the fault makes
// when it strikes, and that keeps it from striking again, as after a restart. KIND is
//
//	kill   SIGKILL
//	stop   SIGSTOP
//	exit   exit code 1
//	wait   the rank stands still until there is a file MARK.go
//	end    the goroutines of all parts that RANK's rank carries are ended, and the
//	       parts continue on other ranks
//	move   the part continues on the next graph rank, after this epoch
//
// The last two lead to another view of the run (world.View). The caller of New executes them
// (Fault.Views).
//
// Moments of training ranks are the names of tasks, as in reports (AV, SC, GA, loss, ∇AV, ∇GA,
// ∇SC, WU), and eval, save and total. total is before ranks add up the sums of --norm batch
// and pair. Moments of servers are received messages (pull, fetch, close, gradient, sum,
// state), and eval, when the weights of an epoch have been sent. Bridges have the moment task.
// Rank 0 has additional moments while it writes: opened, when there is a run folder; "save
// FILE", before that file of a checkpoint, and "save rename"; summary, when the model is
// written and its summary is not. All ranks come to start, in the world and before anything
// else, and to finish, after the last epoch.
//
// Without the variable there is no Fault, and At costs a comparison with nil.
package inject
