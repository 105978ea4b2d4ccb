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
// A Source is what gathers get ghosts from, and who hands them rows: Always uses an
// exchange for the rows of every epoch, and package refresh has other policies. A
// History is rows that stand until others come, and a Batch takes a Part of a plan's
// rows there; package refresh makes policies of them.
//
// A Reduction is a plan with fewer rows: where a vertex gathers from many ghosts
// of one rank, that rank sends their sum.
//
// Rows travel as they are, or through a codec of package codec: then in chunks,
// each of which is sent as soon as it is encoded and decoded as soon as it has
// come, while others are under way. What arrives may be anything: the answer is
// rows or an error. What an exchange does with rows is a function of the rows,
// of the plan and of the Key, never of the workers or of timing.
//
// Package comm declares the small communicator that halo needs; package world
// supplies it. Begin, End and everything named collective must be called by
// all ranks of the communicator in the same order, with the same codec and
// width.
package halo
