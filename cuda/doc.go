// Package cuda is the arithmetic of training on a GPU: an Ops computes what
// siafu/kernels asks of one with the kernels of package cuda/kernels on a device of
// package cuda/device. Nothing is computed on the host but what a kernel has left to
// it: the last sums of a loss and of counts, and the plan of a sparse matrix.
//
// All Ops of a rank share one stream of the device, a workspace and the plans of sparse
// matrices. A device that fails once is lost to all of them: each call that
// finds it so ends the piece of work under way with the first error, by mapped.Fail,
// which the rank makes its own.
//
// On a Sketch an Ops counts the memory that it would take, and does nothing else.
package cuda
