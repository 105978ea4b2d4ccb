// Package mapped holds large arrays outside the garbage-collected heap, and
// files as arrays.
//
// An Arena gives zeroed arrays of anonymous memory, with huge pages where the
// kernel has them, and takes them all back at once; whoever uses an array
// after Arena.Free faults. A File is a whole file mapped for reading.
//
// Bytes and Cast look at the same memory as another type; the machine must be
// little-endian, as every file of ours is.
package mapped
