// Package multilevel implements multilevel k-way partitioning. It assigns the vertices of a graph
// to ranks so that few edges are cut. It follows Karypis and Kumar ("A fast and high quality
// multilevel scheme for partitioning irregular graphs", SIAM J. Sci. Comput. 1998, and "Multilevel
// k-way partitioning scheme for irregular graphs", J. Parallel Distrib. Comput. 1998).
//
// Coarsening merges vertices into clusters, level by level, until the graph has a few vertices per
// rank. Recursive bisection divides the coarsest graph. Uncoarsening returns to the original graph
// level by level. On each level, refinement moves vertices to other parts to reduce the cut.
//
// Partition balances three weights at once: vertices, edges into vertices, and training vertices.
// In a directed graph, an edge in either direction connects two vertices. Two vertices with edges
// in both directions count twice, because both edges may be cut.
//
// The result depends only on the graph and the options, not on the number of processors.
//
// Memory: about 60 bytes per vertex. The gains take 8 bytes per pair of a vertex and a part, or 8
// bytes per edge if that is less. A coarse graph takes 8 bytes per edge, and twice that during its
// construction. The first coarse graph has about half of the edges if the graph has no clusters,
// and about a tenth if it has clusters. The original graph is not copied.
package multilevel
