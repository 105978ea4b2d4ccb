// Package mpi implements a world over Open MPI (build tag mpi). Its ranks are processes of an MPI
// launcher. Without the tag the package compiles, and Start returns a fault.
//
// The package gompi starts and stops the library. Everything else goes through a few C
// functions (shim.c), because gompi has no non-blocking calls, no error codes and no new
// communicators:
//
//   - Every wait polls and yields the processor, so that a waiting rank neither starves a
//     computing one nor waits past its Limits.
//   - Each communicator has two MPI communicators, one for collectives and one for point to
//     point, so that both kinds can be used concurrently.
//   - Return codes become errors; a failed call does not end the process.
//   - Memory that MPI points to is pinned or in C memory. If its communication is given up, it
//     remains so forever.
//   - The memory that a rank shares with others on its host is in a folder that it locks, so
//     that it can be removed after all ranks were killed.
//   - Lengths are ints here and 32 bits in MPI: longer messages are sent in pieces.
//
// MPI does not report the missing ranks of a stalled collective. Ranks that wait too long
// therefore notify each other of their current collective (watch.go). The error names the ranks
// that send no such notice. A rank that begins a collective and then computes instead of waiting
// sends none either, and may be named, too.
package mpi
