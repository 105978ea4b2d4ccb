// Package multilevel divides the vertices of a graph among ranks so that few
// edges are cut: multilevel k-way partitioning. It follows Karypis and Kumar ("A fast and
// high quality multilevel scheme for partitioning irregular graphs", SIAM J.
// Sci. Comput. 1998, and "Multilevel k-way partitioning scheme for irregular
// graphs", J. Parallel Distrib. Comput. 1998).
//
// The graph is coarsened level by level until it has a few vertices per rank. The coarsest
// graph is divided by recursive bisection. During uncoarsening, boundary vertices move to
// other parts if that reduces the cut.
//
// Partition balances three things at once: vertices, edges into them, and training vertices.
// In a directed graph, edges in either direction connect two vertices, and a pair with both
// counts twice: it is cut twice.
//
// All is deterministic in the graph and the options, and independent of the number of processors.
//
// Memory: about 60 bytes per vertex; 8 bytes per pair of a vertex and a part, or per edge if
// these are fewer; and the coarse graphs with 8 bytes per edge, twice during construction. The
// second graph has half of the first one's edges if nothing clusters, else a tenth. The graph
// itself is read in place.
package multilevel
