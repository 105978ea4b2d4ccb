// Package partition assigns each vertex of a dataset to a rank, and writes the shards that the ranks
// read.
//
// Assign returns the owner of each vertex. Build writes the folder parts/P of a dataset: one shard
// per rank, and meta.json. The folder appears complete or not at all. A Report describes the cost
// of a partitioning. Place.Ensure finds the shards that a training requests, or builds them. Results
// depend only on the dataset and the options, not on the number of processors.
//
// A rank numbers its own vertices in an order of package order. It groups its ghosts by owner, in
// the order of the owner.
//
// Memory: 16 bytes per vertex, the memory of the vertex order, 29 bytes per vertex and 12 bytes per
// ghost of one shard at a time, and 32 MiB of that shard's edges and features. The dataset is
// memory-mapped. Package multilevel documents its own memory.
package partition
