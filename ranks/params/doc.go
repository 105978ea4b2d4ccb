// Package params provides the weights of a graph rank and takes its gradients: from a
// parameter server (Client, Serve), or from the graph ranks together (Replicated). Package
// protocol has the messages of servers and ranks, as state machines; this package connects
// them to a world.
//
// One goroutine at a time may use a Source. Replicated is collective over the graph ranks.
// A Client communicates with servers only.
package params
