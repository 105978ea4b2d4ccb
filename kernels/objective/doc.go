// Package objective implements the training objectives beyond softmax cross entropy:
// losses with gradients, the score of an epoch, and the metrics of predictions, for the
// tasks of graph's Meta.
//
// A loss and a score are sums over rows, and a Tally is a sum of counts. Intervals and
// ranks add their sums, and the result is that of all rows. All functions work on rows
// in memory that Go can read. No function is collective.
package objective
