// Package graph is a graph on disk and in memory.
//
// It owns the dataset folder: its layout, its checksums, how it is written
// (to a temporary name, synced, renamed) and how it is opened (memory-mapped,
// verified). The sub-packages own what leads there and away from there:
//
//	fault      the kinds of error and their exit codes
//	mapped     large arrays outside the garbage-collected heap, mapped files
//	arrayfile  the one file format of ours: named arrays behind a checksummed table
//	npy        NumPy's npy and npz files
//	importers  other people's formats into a dataset folder
//	download   public datasets by URL and checksum
//	generate   degree-skewed planted-partition graphs
//	order      numberings that bring neighbours together
//	partition  which rank owns which vertex, and the report on it
//	shard      what one rank needs of a partitioned graph, on disk and in memory
//
// Vertices are numbered 0..n-1 in a dataset (their dataset id); the ids that a
// user knows them by are kept beside (IDs). An edge u→v means that v gathers
// from u: CSR rows are destinations and hold their in-neighbours. Offsets are
// int64 everywhere, so a graph may have more than 2³¹ edges; vertex ids are
// uint32.
//
// Nothing here is collective, and nothing here knows of ranks beyond their
// number.
package graph
