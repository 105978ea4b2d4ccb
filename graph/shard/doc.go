// Package shard reads and writes shards. A shard is the part of a partitioned graph that one rank
// needs. It contains the rank's own vertices, the ghosts that they gather from, and the edges into
// own vertices. It also contains the send lists: the own rows that other ranks need. A rank reads
// its shard and never the whole graph.
//
// The shard of rank R of P ranks is the file parts/P/R.part in the dataset folder. It is an
// arrayfile. Open maps it into memory and verifies it. It rejects a shard of another dataset or of
// another number of ranks. parts/P/meta.json records the partitioner, its report and the
// fingerprint of the dataset.
package shard
