// Package shard stores the part of a partitioned graph that one rank needs: its own vertices, the
// ghosts they gather from, the edges between them, and the send lists (the rows that other ranks
// need). A rank reads its shard and never the whole graph.
//
// A shard is the file parts/P/R.part (P ranks, rank R) of a dataset folder, an arrayfile,
// memory-mapped and verified when opened. parts/P/meta.json records the partitioner, its report
// and the fingerprint of the dataset. Open refuses a shard of another dataset or another P.
package shard
