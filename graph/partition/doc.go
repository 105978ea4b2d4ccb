// Package partition assigns every vertex to an owner rank, and divides a dataset
// into the shards that the ranks read.
//
// A Place finds requested shards, or builds them next to existing ones. Assign gives every vertex
// an owner. Build writes the folder parts/P of a dataset (one shard per rank and meta.json) in
// one rename. A Report describes the cost of the cut. Results are deterministic in the dataset
// and the options, and independent of the number of processors.
//
// A rank numbers its own vertices in an order of package order. Its ghosts are
// grouped by owner, in the order of the owner.
//
// Memory: a few words per vertex, the memory of the order, and one shard at a
// time. The dataset is memory-mapped. Package multilevel documents its own memory.
package partition
