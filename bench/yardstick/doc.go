// Package yardstick runs what siafu is measured against: a plain C loop for
// the gather, OpenBLAS for dense products, PyTorch for an epoch. Their sources
// are part of the program and are compiled, or interpreted, when they are asked
// for.
//
// A Rival is a child process that holds its operands and works only between
// the call of Run and its return, so that two sides can take turns on one
// machine; its idle threads stop spinning within a millisecond. Its result
// can be fetched and must be compared with siafu's own: a yardstick that does
// not do the work measures nothing.
//
// Faults have kind Missing where this machine lacks what a yardstick needs
// (a compiler, a library, an instruction set); the caller says so and goes
// on without it.
package yardstick
