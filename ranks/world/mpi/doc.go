// Package mpi is the world whose ranks are processes under an MPI launcher,
// over Open MPI (build tag mpi). Without the tag the package compiles, and
// Start says what is missing.
//
// The package gompi starts and stops the library. Everything else goes through a few C
// functions (shim.c), because gompi has no non-blocking calls, no error codes and no new
// communicators:
//
//   - Every wait polls and yields the processor, so that a waiting rank neither starves a
//     computing one nor waits past its Limits.
//   - Each communicator is two of MPI's, one for collectives and one for point
//     to point, so that both may be used at once.
//   - Return codes become errors; a failed call does not end the process.
//   - Memory that MPI points to is pinned or in C memory, forever if its communication is
//     given up.
//   - The memory that a rank shares with others on its host is in a folder that it locks, so
//     that it can be removed after all ranks were killed.
//   - Lengths are ints here and 32 bits in MPI: longer messages are sent in pieces.
//
// MPI does not report the missing ranks of a stalled collective. Ranks that wait too long
// therefore notify each other of their current collective (watch.go); silent ranks are named
// in the error. A rank that begins a collective and then computes instead of waiting is also
// silent, and may be named too.
package mpi
