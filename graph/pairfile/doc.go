// Package pairfile reads pairs of vertices, given by the ids of the user, from text files
// and array files: edges to predict, negative pairs, and pairs to score.
//
// For any input the result is pairs of existing vertices, or a fault of kind Missing, IO or
// Data with the file, the line or element, the value and the remedy.
package pairfile
