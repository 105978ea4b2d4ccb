// Package simulate models epochs of synchronous and of boundedly asynchronous training on other
// links, workers and numbers of ranks than those of a run that was recorded.
//
// A Recording has the durations of all tasks from the timeline of "train --trace", by
// epoch and rank. A Cluster replays its epochs: it has ranks with
// workers, a network card each, and links between them. Cluster.Run is a
// discrete-event simulation: its clock goes from event to event, and equal input gives
// equal output.
//
// Dependencies between tasks are not modelled but taken from the engine. Each simulated
// rank walks the task graph of a run with the same outline (engine.Outline,
// schedule.Walk). It requests a task when a run's workers do: after a task, and when a
// message arrives at an idle worker.
//
// Assumptions of the model: a task takes its recorded time. A card sends one message at a
// time and receives one at a time, at the rate of the link, in both directions at once.
// Copies and threads of the network cost no CPU time beyond the recorded tasks. A rank has a
// disk, which reads files ahead of its tasks, one part at a time. Scaled models ranks that were
// not recorded.
//
// No function is collective.
package simulate
