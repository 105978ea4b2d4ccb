// Package pairfile reads pairs of vertices, under their user's ids, from files of text and of
// arrays: edges to foretell, pairs to tell them from, and pairs to score.
//
// Whatever the bytes are, the answer is pairs of vertices that there are, or a fault of kind
// Missing, IO or Data with the file, the line or the element, the value, and what to do.
package pairfile
