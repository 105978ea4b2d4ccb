// Package holdout creates a dataset for link prediction from another dataset. It removes
// some edges from the graph, in both directions, as prediction targets (graph.HeldOut).
//
// The sampled edges depend on the seed and the graph alone.
package holdout
