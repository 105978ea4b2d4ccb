// Package ranks decides who does what and runs the training loop.
//
// A world (package world) has graph ranks, which own one partition each, and
// parameter-server ranks, which hold the weights (package server). Rank 0 is
// always a graph rank and the one that speaks. Config is everything a run can
// be told; Train is the whole run of one rank; Launch starts the ranks of an
// in-process world or joins the one that a launcher made.
//
// With --codec auto a tuning tells a lockstep's exchange which codec to use next
// (package tune decides).
//
// A graph rank divides its vertices into intervals. Package schedule runs their
// tasks; lockstep is the flow of tasks of the synchronous modes and engine that
// of bounded asynchrony. What multiplies by the adjacency matrix is package
// graphwork's, all other arithmetic goes through package tensor.
//
// Train, and everything it calls with a communicator, is collective over the
// world.
package ranks
