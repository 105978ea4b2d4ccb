// Package cuda implements the arithmetic of training on a GPU: an Ops implements
// kernels.Ops with the kernels of package cuda/kernels on a device of package
// cuda/device. The host computes only the last sums of a loss and of counts, and the
// plan of a sparse matrix.
//
// All Ops of a rank share one stream of the device, a workspace and the plans of sparse
// matrices. A failed device is lost to all of them: each later call ends the current work
// with the first error by mapped.Fail, and the rank returns this error.
//
// On a Sketch an Ops only counts the memory that it would allocate.
package cuda
