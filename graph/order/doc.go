// Package order computes vertex orders in which neighbours are close to each other.
//
// A gather reads a row of features for each edge. If consecutive vertices share neighbours, the rows
// of these neighbours are still in the cache of the core. An order places such vertices next to each
// other. It changes only the position of rows and the order of additions.
//
// New computes an order and estimates its cache misses. The estimate, Misses, is a model of a cache
// and not a measurement. Results depend only on the graph, not on the number of processors. In a
// directed graph, only the in-edges determine the order.
//
// Memory: a few words per vertex, and for rabbit up to 8 bytes per edge.
package order
