// Package history stores historical embeddings: the newest representation of every vertex
// in every layer that gathers. The store is sharded over the ranks; each rank stores the
// rows of its own vertices (the key-value store of DIGEST, arXiv 2206.00057, section 3.2,
// and the histories of GNNAutoScale, ICML'21).
//
// Push replaces rows of own vertices and records their epoch. Pull gets the rows of a set of
// vertices, of this rank and of others, as they are when it begins. ExchangeSets exchanges the
// sets once, so that no rank requests single rows: each rank announces the set that it pulls,
// all ranks at once, and every owner knows what to send. Rows are stored and sent as float32
// or in fewer bits (Format). The result of a pull depends only on the earlier pushes on all
// ranks, never on timing.
//
// Batch is a halo.Collective over a store: the ghost rows of a mini-batch. Variates corrects sampled sums
// with a store, whose rows may be predicted (Variates.Predict).
//
// Design note: rows are sent with the two-sided exchange of package comm, which every world
// has. One-sided windows would save owners a call, but not a copy, because owners pack rows
// from several places. An epoch of a window is collective as well.
package history
