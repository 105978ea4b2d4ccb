// Package npy reads and writes NumPy's array files: npy, one array (format
// versions 1, 2 and 3), and npz, a zip of them.
//
// Reading is defensive: for any content the result is an array or a fault of kind Data that names
// the file and the position. Memory is proportional to the size of the file, not to a number in a
// header. Objects ('O', pickled Python) and structured types are refused.
//
// An Array has the bytes of the file. Float32s, Int64s and Strings convert them to row-major
// order. Arrays of a mapped file or of a Zip may share its memory and are valid until it is closed.
package npy
