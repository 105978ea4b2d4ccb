// Package kernels is the arithmetic of training on flat matrices: sparse
// times dense, dense times dense, activations, softmax and loss, dropout,
// optimisers, initialisers. Sub-package model holds the networks, one file
// each; sub-package kerneltest the conformance suite of the kernels.
//
// Whoever trains calls an Ops, on matrices (Mat) and vectors that say where they
// lie. A Team is the Ops of this machine's processors, and its methods are the
// kernels: matrices are row-major, dst comes first.
//
// A kernel's plain Go form is its specification. Results do not depend on the
// number of workers: work is split so that every sum has a fixed order.
// Wrong sizes panic with a constant string; there are no other errors but those
// of NewOptimizer. After its first call on a Team, no kernel allocates.
//
// Random numbers (dropout, initial weights) are a function of counters, never
// of a generator's state: any number of ranks and workers draws the same.
//
// kernels knows nothing of ranks: what crosses a partition is the caller's
// business.
package kernels
