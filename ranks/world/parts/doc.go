// Package parts maps a world of parts onto a world of ranks. Each rank carries one or
// several parts (world.View), each a goroutine with its own communicator. Servers are on
// their own ranks. A caller sees a world with one rank per part, independent of the
// carriers.
//
// Parts of one rank exchange bytes through memory, as in package inproc. Data for parts of
// other ranks is sent as messages of the underlying world, without its collectives after
// the start. Sums, which package world computes in the order of ranks, are therefore
// computed in the order of parts. They have the same bits on any number of ranks.
//
// A block for all parts of a rank is sent to that rank once. A long block for one part is
// sent from and received into the caller's memory: no rank stores copies. A part that
// abandons a collective gets its buffers back only when the view ends, as under MPI. A
// failure of one part ends all parts of its rank, and counts as the rank's failure. Limits
// with a Name report which part waits.
//
// A view can be replaced (RunViews), and a process can join the next one (Join). Between two views no message
// is in transit. The ranks then agree on the next view, and parts move. Each view has its own communicators.
package parts
