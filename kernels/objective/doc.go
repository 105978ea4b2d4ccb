// Package objective implements training objectives other than plain softmax cross entropy. For the
// tasks in package graph, it computes losses with gradients, the score of an epoch, and the metrics
// of predictions.
//
// Losses, scores and tallies are sums over rows. Each interval of vertices and each rank computes
// its own sums. The sum of these sums is the result for all rows. All rows must be in memory that
// Go can read. No function is collective.
package objective
