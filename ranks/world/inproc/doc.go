// Package inproc is the world whose ranks are goroutines of this process and
// whose messages are copies: what "siafu train --ranks N" uses without a
// launcher, and what tests use.
//
// A byte is copied once, from the sender's buffer to the receiver's. In a
// collective the copy of a block is made by whichever of the two ranks comes
// later, at the moment it begins the collective, so that nobody's progress
// depends on another rank calling Wait. A point-to-point message is copied
// when it is sent; Isend never waits.
//
// A rank that returns an error, panics or aborts makes all waits of the other
// ranks fail with a world.LostError that names it, and so does a rank that
// returned while others still wait for it in a collective. Limits apply to
// every wait. Unlike under MPI, blocks whose lengths sender and receiver see
// differently, and collectives called in different orders, are always found
// and reported.
//
// A world may have ranks in other processes, too (RunShare, for package parts):
// blocks and messages for them are carried as letters, and everything else stays
// as it is. A block that is empty does not travel to another process then, and
// the root of a Bcast does not wait for other processes.
package inproc
