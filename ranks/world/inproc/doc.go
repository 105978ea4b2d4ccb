// Package inproc implements a world whose ranks are goroutines of this process and whose
// messages are copies. "siafu train --ranks N" without a launcher and tests use it.
//
// A byte is copied once, from the sender's buffer to the receiver's. In a collective, the
// later of the two ranks copies the block when it starts the collective. Therefore no
// rank's progress depends on another rank calling Wait. A point-to-point message is copied
// when it is sent; Isend never waits.
//
// If a rank returns an error, panics or aborts, all waits of the other ranks fail with a
// world.LostError that names it. The same applies to a rank that has returned while others
// wait for it in a collective. Limits apply to every wait. Unlike under MPI, mismatched
// block lengths and collectives called in different orders are always detected and
// reported.
//
// A world may have ranks in other processes (RunShare, for package parts). Their blocks and
// messages are sent as a Packet; everything else is unchanged. An empty block is not sent to
// another process, and the root of a Bcast does not wait for other processes.
package inproc
