// Package server is the parameter server: a state machine without I/O, which
// takes a message and returns messages, and the wire form of the messages.
//
// K servers hold replicas of all weights of all layers (Dorylus, OSDI'21,
// §5.1). Each graph rank talks to one of them. A server sums the gradients of
// its own ranks in ascending order of ranks, sends that partial sum to the
// other servers, adds all partial sums in ascending order of servers and steps
// its optimiser: all servers compute the same bits, so they stay replicas.
//
// Package async has the servers of bounded asynchrony.
//
// Nothing here is collective and nothing here waits: a request for weights
// that do not exist yet is answered when they do.
package server
