// Package signals converts the signals of users and batch systems into requests that
// a training loop handles at the end of an epoch:
//
//	SIGUSR1           Checkpoint: save and continue
//	SIGTERM, SIGINT   Stop: finish the epoch, save, exit 75
//	SIGHUP            Stop, unless it was ignored at the start (nohup)
//	a second SIGINT   stop now, exit 130
//
// One Watcher serves all ranks of a process. Requests are ordered, and ranks agree on
// their maximum. Therefore it does not matter which ranks a signal reaches, and when:
//
//	ask := []float64{float64(w.Pending())}
//	world.MaxFloat64s(comm, ask)
//	switch signals.Request(ask[0]) { … }
//	w.Served() // after writing the checkpoint
//
// A launcher may repeat a signal that the terminal has sent to all processes. Therefore a
// second SIGINT counts only half a second after the first. A second SIGTERM changes nothing,
// because batch systems repeat it.
package signals
