// Package world says what a set of communicating ranks is. Package inproc
// supplies it with goroutines, package mpi with an MPI library; package
// worldtest is the conformance suite that both pass.
//
// A Comm is safe for use by one goroutine at a time for collectives; point to
// point calls may be made by others meanwhile. Collectives must be called by
// all ranks of the communicator in the same order. No call waits for ever: a
// lost rank or a passed deadline (Limits) makes it return an error that names
// the operation and, where it can be known, the rank that is missing. After
// an error a communicator can only be aborted; after an EndedError it is left for one
// of another View.
//
// Sums (sum.go) add in ascending order of ranks, whatever the world, so that
// results do not depend on the library or on timing.
package world
