// Package pairs prepares link prediction: it reads pairs of vertices, given by the ids of the user,
// and creates datasets with held-out edges.
//
// Read reads text files and array files: edges to predict, negative pairs, and pairs to score. For
// any input the result is pairs of existing vertices, or a fault of kind Missing, IO or Data with the
// file, the line or element, the value and the remedy.
//
// HoldOut removes some edges from the graph of a dataset, in both directions, as prediction targets
// (graph.HeldOut). Sampled edges depend on the seed and the graph alone.
package pairs
