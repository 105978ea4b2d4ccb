// Package mapped holds large arrays outside the garbage-collected heap, and
// files as arrays.
//
// An Arena gives zeroed arrays of anonymous memory, with huge pages where the
// kernel has them, and takes them all back at once; whoever uses an array
// after Arena.Free faults. An array that the system has no memory for is a
// panic, which Catch turns into a fault where a rank, a task or a command
// begins. A sketch is an Arena that counts arrays and has no memory for them.
// A File is a whole file mapped for reading. Under the race detector, which does
// not see mapped memory, an Arena's arrays are on the heap.
//
// Bytes and Cast look at the same memory as another type; the machine must be
// little-endian, as every file of ours is.
package mapped
