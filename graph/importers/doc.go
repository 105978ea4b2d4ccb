// Package importers turns other people's graph files into a dataset folder.
//
// Import is the whole interface. Each format is one file of this package and
// one row of its table; docs/importing.md says what each reads. An importer
// checks what it reads (sizes, id range, label range, numbers that are not
// finite, splits that overlap, truncated files), and a failure is a fault that
// names the file, the position, the value and what to do. Nothing is left at
// the destination then, nor in a temporary folder.
//
// Edges and dense features lie in mapped memory outside the heap, or stay in
// the source file where it holds them as they are needed; counts that a header
// claims are compared with the bytes that are there before they are used.
package importers
