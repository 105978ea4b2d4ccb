// Package engine runs the tasks of a graph rank: it trains in step with the other
// ranks (Engine.Train), or in bounded asynchrony or at its own pace
// (Engine.TrainAsync), evaluates on the way, and predicts (Engine.Infer).
//
// What it needs is in its arguments. A Rank has everything that is resolved
// before: configuration, communicators, the rank's part of the graph, network,
// codecs, a backend of tensor work. Weights come from a params.Source and
// gradients go there; a stopping.History decides when training ends; a Saver
// says when a checkpoint is due, and writes it; a Reporter takes the lines of
// epochs. The engine itself opens no file and prints nothing.
//
// # Two flows over the same parts
//
// An epoch is a schedule.Flow: lockstep in the synchronous modes, async in
// bounded asynchrony. Both run on the same workers and clocks, on the same
// intervals and tensor tasks (interval.do), and multiply by the adjacency matrix
// through package graphwork; what they find of weights is added up in the same
// findings, judged by the same stopping.History, reported in the same lines and
// saved by the same Saver. The parameter protocol is one as well: a synchronous
// epoch is staleness 0 with one version (package params). A run in bounded
// asynchrony is evaluated at its end by the trainer of the synchronous modes.
//
// Design note: there are two flows because one would cost either of them. A
// synchronous epoch is known before it begins: its tasks are walked as a graph
// that was built once, rows of all intervals are one matrix that layers make in
// place, and one collective exchange carries those of all intervals, so that an
// epoch allocates nothing and takes no lock. In bounded asynchrony nobody knows
// what comes next: an interval's next task follows from the one before, and its
// rows are copied into a store whose readers and writers exclude each other
// (published). Rows of other ranks come from a halo.Source in both. With one
// interval on one rank and staleness 0 the two do the same arithmetic, to the
// bit.
//
// At its own pace (free) a rank runs the lockstep of its own part, with a source of
// ghosts that waits for nobody, and talks to others as in bounded asynchrony (mail).
//
// Where rows are handed to the source of ghosts and taken from it is one file in
// each flow: transfer.go and published.go. What ghosts emit in the first layer may be made
// here instead, from features that were fetched once: ghostfeatures.go.
package engine
