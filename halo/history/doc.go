// Package history keeps the newest representation of every vertex in every layer
// that gathers, sharded over the ranks: each keeps the rows of its own vertices
// (the key-value store of DIGEST, arXiv 2206.00057, section 3.2, and the histories of
// GNNAutoScale, ICML'21).
//
// Push replaces rows of own vertices and notes the epoch that they are of. Pull brings
// the rows of a set of vertices, of this rank and of others, as they are when it begins.
// Sets are agreed on once (Agree), so that nobody asks for rows: ranks say which set
// each of them pulls, all ranks the same, and every owner knows what to send. Rows are
// stored, and travel, as they are or in fewer bits (Format). What a pull brings is a
// function of the pushes before it on all ranks, never of timing.
//
// Batch is a halo.Collective on a store: the ghosts of a mini-batch.
//
// Design note: rows travel in the two-sided exchange that package comm has, in a world
// of any kind. One-sided windows would save owners a call, not a copy: they pack rows
// of which a set has some here and some there, and an epoch of a window is collective
// as well.
package history
