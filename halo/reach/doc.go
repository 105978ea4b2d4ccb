// Package reach fetches rows of arbitrary vertices from their owners, and returns gradients.
// It serves the ends of pairs that are no edges, which halo plans do not contain.
//
// A Directory maps each vertex to its rank and row, in 4 bytes per vertex of the whole graph.
// Directory.Request makes a Set, which may then be fetched any number of times. Gradients are
// added in ascending order of ranks. Collective functions are marked. One goroutine at a time
// uses a Directory and its sets.
package reach
