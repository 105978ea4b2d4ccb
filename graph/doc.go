// Package graph stores a graph on disk and in memory.
//
// It defines the dataset folder: its layout, its checksums, how it is written (to a temporary
// name, synced, renamed) and how it is opened (memory-mapped, verified). The main sub-packages:
//
//	fault      the kinds of error and their exit codes
//	mapped     large arrays outside the garbage-collected heap, mapped files
//	arrayfile  the array file format of siafu: named arrays after a checksummed table
//	npy        NumPy's npy and npz files
//	importers  conversion of other formats into a dataset folder
//	download   public datasets by URL and checksum
//	generate   degree-skewed planted-partition graphs
//	order      numberings that bring neighbours together
//	partition  the owner rank of each vertex, and the report on the cut
//	shard      the part of a partitioned graph that one rank reads
//
// Vertices are numbered 0..n-1 in a dataset (their dataset id). IDs stores the
// ids of the user. An edge u→v means that v gathers from u: CSR rows are
// destinations and contain their in-neighbours. Offsets are int64, so a graph may
// have more than 2³¹ edges; vertex ids are uint32.
//
// No function is collective. The package knows only the number of ranks.
package graph
