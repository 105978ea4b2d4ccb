// Package mpi is the world whose ranks are processes under an MPI launcher,
// over Open MPI (build tag mpi). Without the tag the package compiles, and
// Start says what is missing.
//
// The package gompi starts and stops the library. Everything else goes through
// a few C functions beside it (shim.c), because gompi has no non-blocking
// calls, no error codes and no communicators of one's own:
//
//   - Every wait is a poll that gives the processor away, so that a waiting
//     rank neither starves a computing one nor waits past its Limits.
//   - Each communicator is two of MPI's, one for collectives and one for point
//     to point, so that both may be used at once.
//   - Return codes become errors; a failed call does not end the process.
//   - What MPI keeps a pointer to is pinned or lies in C memory, and stays so
//     for ever if its communication is given up.
//   - The memory that a rank shares with others on its host lies in a folder
//     that it holds, so that it can be removed after everybody was killed.
//   - Lengths are ints here and 32 bits in MPI: longer ones travel in pieces.
//
// MPI does not tell who is missing in a stalled collective. Ranks that wait
// too long therefore tell each other where they are (watch.go); who says
// nothing is named in the error. A rank that begins a collective and then
// computes instead of waiting is silent too, and may be named beside it.
package mpi
