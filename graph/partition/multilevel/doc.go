// Package multilevel divides the vertices of a graph among ranks so that few
// edges are cut: multilevel k-way partitioning. It follows Karypis and Kumar ("A fast and
// high quality multilevel scheme for partitioning irregular graphs", SIAM J.
// Sci. Comput. 1998, and "Multilevel k-way partitioning scheme for irregular
// graphs", J. Parallel Distrib. Comput. 1998).
//
// A graph is made smaller, level by level, until it has a few vertices a rank;
// the smallest is divided by recursive bisection; on the way back to the
// graph itself vertices at the border of two parts move where that cuts less.
//
// Partition balances three things at once: vertices, edges into them, and
// training vertices. In a directed graph an edge either way holds two vertices
// together, and a pair with both counts twice: it is cut twice.
//
// All is deterministic in the graph and the options, and independent of the
// number of processors.
//
// Memory: about 60 bytes a vertex, 8 bytes for each pair of a vertex and a
// part, or an edge where these are fewer, and the smaller graphs, 8 bytes an
// edge, twice while one is made. Where nothing clusters the second has half of
// the first one's edges, else a tenth. The graph itself is read where it is.
package multilevel
