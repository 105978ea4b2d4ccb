// Package ranks is a training run: who does what, and the life of one rank.
//
// A world (package world) has graph ranks, which own one partition each, and
// parameter-server ranks, which hold the weights (package params). Where graph
// ranks carry several parts of the graph, a run lives in a world that has a rank
// for each part (world.View, package parts), and "rank" in this package is one of
// that world. A view can be replaced while a run goes on (course). Rank 0 is always
// a graph rank and the one that speaks. Config is everything a run can be told.
// Train is a whole run, Predict runs a trained network over every vertex, and
// Doctor says what a machine or a world can do: each starts the ranks of an
// in-process world or joins the one that a launcher made.
//
// A run's life: rank 0 opens it (dataset, run folder, checkpoint, partition),
// all join (shard, timeline), agree on partition and orders, and ask for memory;
// then graph ranks train with an engine (package engine) and servers serve, until
// rank 0 writes what the run leaves. Whatever can be refused is refused before
// anything is written.
//
// Train, and everything it calls with a communicator, is collective over the
// world.
package ranks
