// Package holdout makes a dataset for link prediction of another one: some of its edges
// are taken out of the graph, in both directions, to be foretold (graph.HeldOut).
//
// What it draws depends on the seed and the graph alone.
package holdout
