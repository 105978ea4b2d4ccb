// Package simulate models epochs of synchronous training (pipe, nopipe) on other
// links, workers and numbers of ranks than those of a run that was recorded.
//
// A Recording is what the timeline of "train --trace" tells: how long each task took,
// in each epoch, on each rank. A Cluster is where its epochs are replayed: ranks with
// workers, a network card each, and links between them. Cluster.Run is a
// discrete-event simulation: its clock goes from event to event, and equal input gives
// equal output.
//
// What may run when is not modelled. Each simulated rank walks the graph of tasks that
// a run with the same outline walks (engine.Outline, schedule.Walk), and asks it at the
// moments at which a run's workers do: when a task has ended, and when a message comes
// while a worker has nothing to do.
//
// What is modelled: that a task takes as long as it was recorded to; that a card sends
// its messages one after another and receives them one after another, at the rate of
// the link, in both directions at once; that copies and threads of the network cost
// processors nothing beside what the recorded tasks contain; and whatever Scaled says
// of ranks that were not recorded.
//
// Nothing here is collective.
package simulate
