// Package spot makes and reads traces of spot machines, and simulates training systems on them.
//
// A Trace has the moments at which machines join and are lost. Generate makes one with losses in
// bulk, Hourly the traces of Bamboo's simulator (NSDI'23, §3.6.2), and Read reads both public file
// formats. A System decides what happens to a training when machines are lost or join: Bamboo,
// restarts from checkpoints, Varuna, Oobleck, ReCycle, Parcae, and ranks that carry parts of a
// graph. Simulate moves a Cluster through the events of a trace. Its clock goes from event to
// event, and equal input gives equal output.
//
// Start reading at cluster.go. Assumptions of the model: the rate of training is constant between
// events, each second belongs to exactly one Phase, and the iteration times of the paper's
// networks are inputs as published.
//
// No function is collective.
package spot
