// Package shard holds what one rank needs of a partitioned graph, and nothing
// else: its own vertices, the ghosts they gather from, the edges between
// them, and which of its rows the other ranks need. A rank reads its shard and
// never the whole graph.
//
// A shard is the file parts/P/R.part (P ranks, rank R) of a dataset folder, an
// arrayfile, memory-mapped and verified when opened. parts/P/meta.json carries
// the partitioner and its report, and the fingerprint of the dataset it was
// made from: a shard of another dataset or another P is refused.
package shard
