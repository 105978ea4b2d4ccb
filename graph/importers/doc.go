// Package importers converts graph files of other programs into a dataset folder.
//
// Start at Import, the only entry point. Each format is one file of this package and one row of
// its table; docs/importing.md describes the formats. An importer checks its input: sizes, ranges
// of ids and labels, non-finite numbers, overlapping splits and truncated files. A failure is a
// fault that names the file, the position, the value and the remedy. A failed import leaves
// nothing at the destination or in a temporary folder.
//
// Edges and dense features are stored in mapped memory outside the heap, or stay
// in the source file if it has the required layout. Counts in a header are
// compared with the size of the file before use.
package importers
