// Package generate makes degree-skewed planted-partition graphs: every vertex has a class, and
// the expected degrees follow a power law (Chung & Lu 2002). A fraction Homophily of the edges
// stays within a class. Features are the centroid of the class plus noise. A class may have
// several communities, each with its own centroid and edges; only the test set has the last one.
// Presets give such graphs the published sizes of graphs that are unavailable; meta.json of a
// generated dataset records that it is synthetic.
//
// The presets ogbn-mag and mag240m are relational graphs. Each relation has its own degrees and prefers edges
// within a class; vertices of all kinds have classes, but only those of the first kind have labels and features.
//
// A dataset depends on its options alone, not on the number of threads or on
// the order of execution: every random number is a hash of the seed, its
// purpose and its position. Edges and features are sampled while they are written.
// Memory: a window of rows (Options.Memory) and a few words per vertex.
//
// Not modelled: triangles, degree correlations beyond the classes,
// classes of unequal size, and vertex ids with locality (ids are shuffled).
package generate
