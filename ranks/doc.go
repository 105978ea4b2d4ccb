// Package ranks runs training and prediction: the roles of ranks and the life of one rank.
//
// A world (package world) has graph ranks, which own one partition each, and parameter-server
// ranks, which store the weights (package params). Graph ranks may carry several parts of the
// graph. Such a run uses a world with one rank per part (world.View, package parts), and
// "rank" in this package means a rank of that world. A view can be replaced during a run
// (viewSequence). Rank 0 is always a graph rank, and only rank 0 prints. Config has all options
// of a run. Train runs a training, Predict applies a trained network to every vertex, and
// Doctor reports what a machine or a world supports. Each of them starts the ranks of an
// in-process world or joins the world of a launcher.
//
// A run is a pipeline of values, one for each stage: rank 0 opens it (opened: run folder,
// checkpoint, partition). All ranks join (joined: dataset, network, shard), agree on the
// partition and the orders of products, start their engines and check the memory (prepared).
// From the begun value graph ranks train (package engine) and servers serve. At the end rank 0
// writes the results. Every check that can refuse a run comes before the first write.
//
// Train, and every function that it calls with a communicator, is collective over the
// world.
package ranks
