// Package engine runs the tasks of a graph rank. It trains synchronously with the other
// ranks (Engine.Train), in bounded asynchrony, or fully asynchronously (Engine.TrainAsync).
// It evaluates during training, and predicts (Engine.Infer).
//
// The engine gets everything from its arguments. A Rank has all resolved settings:
// configuration, communicators, the rank's part of the graph, network, codecs, and a
// backend of tensor work. Weights come from a params.Source, and gradients return to it. A
// stopping.History decides when training ends. A Saver decides when a checkpoint is due,
// and writes it. A Reporter receives the lines of epochs. The engine itself opens no file
// and prints nothing.
//
// # Two flows over the same parts
//
// An epoch is a schedule.Flow: lockstep in the synchronous modes, asyncRank in bounded
// asynchrony. Both use the same workers, clocks, intervals and tensor tasks (interval.start),
// and multiply by the adjacency matrix through package graphwork. Both add their metrics to
// the same findings, which the same stopping.History evaluates. Both report the same lines,
// and the same Saver saves both. The parameter protocol is also shared: a synchronous epoch
// has staleness 0 and one version (package params). The trainer of the synchronous modes
// evaluates a run in bounded asynchrony at its end.
//
// Design note: there are two flows because a single flow would slow down one of the modes. A
// synchronous epoch is known before it starts. Its task graph is built once, rows of all
// intervals are one matrix that layers compute in place, and one collective exchange sends the
// rows of all intervals. Therefore an epoch allocates nothing and takes no lock. In bounded
// asynchrony the order of tasks is unknown. An interval's next task follows from the one
// before, and its rows are copied into a store with mutual exclusion of readers and writers
// (gate). In both flows, rows of other ranks come from a halo.Source. With one interval on one
// rank and staleness 0, both flows give the same bits.
//
// In the fully asynchronous mode (freeRank), a rank runs the lockstep of its own part. Its
// source of ghost rows never waits for another rank, and its messages are those of bounded
// asynchrony (transport).
//
// routes.go has the routes of synchronous passes: the graph, the source of ghost rows and the tasks. Each
// flow has one file that passes rows to the source of ghost rows and takes rows from it:
// transfer.go and async_rows.go. The first layer's ghost rows may instead be computed
// locally from features or cached inputs that were fetched once: see local_ghosts.go.
package engine
