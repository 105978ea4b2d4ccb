// Package world defines communicators: sets of ranks that exchange messages. Package inproc
// implements them with goroutines, package mpi with an MPI library. Package worldtest is
// the conformance suite for both.
//
// One goroutine at a time may call collectives of a Comm; others may make point-to-point
// calls meanwhile. All ranks of the communicator must call collectives in the same order.
// No call waits forever: a lost rank or a passed deadline (Limits) makes it return an
// error. The error names the operation and, if known, the missing rank. After an error a
// communicator can only be aborted. After an EndedError the caller leaves it for the
// communicator of another View.
//
// Sums (sum.go) add in ascending order of ranks in every world, so that results do not
// depend on the library or on timing.
package world
