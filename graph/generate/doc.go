// Package generate makes degree-skewed planted-partition graphs: every vertex
// has a class, the expected degrees follow a power law (Chung & Lu 2002), an
// edge stays within its class with the homophily asked for, and features are
// the centroid of the class plus noise. A class may have several communities, each
// with centroid and edges of its own, the last in the test set alone. They stand in for graphs that cannot
// be had, by the sizes published of those (Presets); meta.json of such a
// dataset says that it is synthetic.
//
// A dataset depends on its options alone, not on the number of threads or on
// the order of anything: every random number is a hash of the seed, its
// purpose and its position. Edges and features are drawn while they are written; what
// is in memory is a window of rows (Options.Memory) and a few words a vertex.
//
// What is not imitated: triangles, degrees that correlate beyond the classes,
// classes of unequal size, vertex ids that carry locality (ids are shuffled).
package generate
