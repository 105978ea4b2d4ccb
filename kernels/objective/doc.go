// Package objective is what a network is trained for where that is more than softmax
// cross entropy: losses with gradients, the score that an epoch tells, and the metrics of
// predictions, for the tasks of graph's Meta.
//
// A loss and a score are sums over rows, and a Tally is one of numbers: intervals and
// ranks add up theirs, and what comes of the sums is that of all rows. Everything
// computes on rows that Go can read. Nothing is collective.
package objective
