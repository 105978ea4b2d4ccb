// Package order numbers vertices so that neighbours are near.
//
// A gather reads a row of features for each edge. If successive vertices of a gather share
// neighbours, the rows of these neighbours are still in a core's cache. An order places such
// vertices next to each other. It changes only the position of rows and the order of sums.
//
// New computes an order and estimates its benefit. Misses is this estimate: a model of a cache,
// not a measurement. Results are deterministic in the graph and independent of the number of
// processors. In a directed graph only the in-edges determine the order.
//
// Memory: a few words per vertex, and for rabbit up to 8 bytes per edge.
package order
