// Package inject causes a real fault at a chosen moment of a run, for tests of fault tolerance.
//
// The environment variable SIAFU_FAULT selects the fault:
//
//	SIAFU_FAULT=RANK:MOMENT:EPOCH:KIND:MARK
//
// The fault occurs on rank RANK of the world, or on part RANK with --parts. It occurs at the first
// MOMENT in epoch EPOCH or later. The fault creates the file MARK, and does not occur if that file
// exists, such as after a restart. KIND is
//
//	kill   SIGKILL
//	stop   SIGSTOP
//	exit   exit code 1
//	wait   the rank waits until the file MARK.go exists
//	end    the goroutines of all parts on this rank end, and the parts continue on other ranks
//	move   the part continues on the next graph rank after this epoch
//
// The last two lead to another view of the run (world.View). The caller of New executes them
// (Fault.Views).
//
// Training ranks have these moments: the tasks of reports (AV, SC, GA, loss, ∇AV, ∇GA, ∇SC, WU),
// eval, save, total and predict. Ranks add up the sums of --norm batch and pair after total, and
// learn for --predict after predict. Servers have the received messages (pull, fetch, close, gradient, sum, state), and eval, after the
// weights of an epoch have been sent. Bridges have the moment task. Rank 0 has additional moments
// while it writes: opened, when the run folder exists; "save FILE", before that file of a
// checkpoint; "save rename"; and summary, between the model and the summary. All ranks have start,
// before any other work in the world, and finish, after the last epoch.
//
// Without the variable, New returns nil, and At costs a comparison with nil.
package inject
