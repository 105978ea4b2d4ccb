// Package order numbers vertices so that neighbours are near.
//
// A gather reads a row of features for each edge. Where vertices that are
// gathered one after another share neighbours, their rows are still in a
// core's cache; an order brings such vertices together. It changes where a row
// lies and the order of sums, nothing else.
//
// New makes an order and says what it is expected to be worth; Misses is the
// estimate, a model of a cache and no measurement. All is deterministic in the
// graph and independent of the number of processors. The rows of the graph are
// taken as they are: in a directed graph the in-edges decide.
//
// Memory: a few words a vertex, and for rabbit up to 8 bytes an edge.
package order
