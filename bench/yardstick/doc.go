// Package yardstick runs the programs that siafu is compared with: a plain C loop for
// the gather, OpenBLAS for dense products, PyTorch for an epoch. Their sources
// are part of the program and are compiled, or interpreted, on demand.
//
// A Runner has the temporary folder of the compiled yardsticks and starts References. A
// Reference is a running yardstick: a child process that holds its operands and works
// only during a call of Run, so that both sides can run interleaved on one machine. Its idle
// threads stop spinning within a millisecond. The caller must fetch its result and
// compare it with siafu's own.
//
// Faults have kind Missing if this machine lacks a requirement of a yardstick
// (a compiler, a library, an instruction set); the caller reports it and continues
// without the yardstick.
package yardstick
