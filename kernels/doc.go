// Package kernels is the arithmetic of training on flat matrices: sparse
// times dense, dense times dense, activations, softmax and loss, dropout,
// optimisers, initialisers. Sub-package model holds the networks, one file
// each; sub-package kerneltest the conformance suite of the kernels.
//
// Training calls an Ops on matrices (Mat) and vectors, which record their location
// (host or device). A Team is the Ops of this machine's processors, and its methods are
// the kernels: matrices are row-major, dst comes first.
//
// A kernel's plain Go form is its specification. The assembly of package avx has the same order of
// sums and the same fused multiply-adds, so that every processor computes the same bits: a product before
// a sum is either fused (avx.FMA) or rounded by a conversion, as in float32(x*y) + z, because the
// compiler may fuse it on some architectures. Results do not depend on the
// number of workers: work is split so that every sum has a fixed order.
// Wrong sizes panic with a constant string; only NewOptimizer and Team.Use
// return errors. After its first call on a Team, no kernel allocates.
//
// Random numbers (dropout, initial weights) are a function of counters, not
// of a generator's state: they are equal for any number of ranks and workers.
//
// The package does not know ranks: the caller exchanges rows between partitions.
package kernels
