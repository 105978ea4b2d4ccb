// Package reach brings rows of any vertices from the ranks that own them, and takes
// gradients back: of ends of pairs that are no edges, which no plan of a halo knows.
//
// A Directory says where each vertex is; it takes 4 bytes a vertex of the whole graph. A
// Set is agreed on by asking (Directory.Ask), and may then be fetched any number of times.
// Gradients are added in ascending order of ranks. What is collective says so; a Directory
// and its sets are used by one goroutine at a time.
package reach
