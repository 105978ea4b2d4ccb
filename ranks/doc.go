// Package ranks decides who does what and runs the training loop.
//
// A world (package world) has graph ranks, which own one partition each, and
// parameter-server ranks, which hold the weights (package server). Rank 0 is
// always a graph rank and the one that speaks. Config is everything a run can
// be told; Train is the whole run of one rank; Launch starts the ranks of an
// in-process world or joins the one that a launcher made.
//
// Train, and everything it calls with a communicator, is collective over the
// world.
package ranks
