// Package halo moves the rows that a partition needs from others.
//
// A Plan says, in flat arrays, which rows go to which rank and which come from
// which; it is immutable. An Exchange moves rows along it: forward, an owner
// sends its rows to those who hold them as ghosts; backward, the same plan
// with the roles swapped, the holder of a ghost sends its gradient and the
// owner adds it, in ascending order of ranks, so that sums are reproducible.
// An exchange is split in Begin and End, and whoever calls it works on what
// needs no ghost in between.
//
// Rows travel through a Codec. A codec's blocks describe themselves and are
// decoded defensively: whatever arrives, the answer is rows or an error.
//
// halo declares the small communicator that it needs (Comm); package world
// supplies it. Begin, End and everything named collective must be called by
// all ranks of the communicator in the same order.
package halo
