// Package signals turns what the operating system and a batch system send to a
// process into what a training loop asks for at the end of an epoch:
//
//	SIGUSR1           Checkpoint: save and continue
//	SIGTERM, SIGINT   Stop: finish the epoch, save, exit 75
//	SIGHUP            the same, unless it was ignored when we started (nohup)
//	a second SIGINT   stop now, exit 130
//
// One Watcher serves all ranks of a process. Requests are ordered, so that
// ranks agree on the maximum of theirs; which rank a signal reached, and
// whether it reached several at slightly different moments, makes no
// difference:
//
//	ask := []float64{float64(w.Pending())}
//	world.MaxFloat64s(comm, ask)
//	switch signals.Request(ask[0]) { … }
//	w.Served() // the checkpoint is written
//
// A launcher may pass on what the terminal has sent as well, so a second SIGINT
// counts only some time after the first. A second SIGTERM is nothing new: batch
// systems repeat it.
package signals
