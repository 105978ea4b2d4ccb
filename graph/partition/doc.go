// Package partition decides which rank owns which vertex, and cuts a dataset
// into the shards that the ranks read.
//
// A Place finds the shards that somebody asks for, or has them made beside those that are
// there. Assign gives every vertex an owner, Build writes the folder parts/P of a
// dataset (a shard a rank and meta.json) in one rename, and a Report says what
// the cut costs. All is deterministic in the dataset and the options, and
// independent of the number of processors.
//
// A rank numbers its vertices in an order of package order, restricted to what
// it owns; its ghosts are grouped by owner and numbered there as the owner
// numbers them.
//
// Memory: a few words a vertex, what the order takes, and one shard at a time.
// The dataset is read through its mapping. The method multilevel takes what its
// package says.
package partition
