// Package cuda implements the arithmetic of training on a GPU: an Ops implements
// kernels.Ops with the CUDA kernels of the folder kernels on a device of package
// device. The host computes only the last sums of a loss and of counts, and the
// plan of a sparse matrix.
//
// All Ops of a rank share one stream of the device, a workspace and the plans of sparse
// matrices. A failed device is lost to all of them: each later call ends the current work
// with the first error by mapped.Fail, and the rank returns this error.
//
// The driver compiles the PTX text of the kernels for devices of compute capability 7.0 and later.
// kernels/make-ptx generates the text from the .cu files with clang-16 only; run it after a change.
// The head of each .cu file documents its kernels. The order of sums depends only on shapes, and
// there are no atomics: the same launch gives the same bits.
//
// On a Sketch an Ops only counts the memory that it would allocate.
package cuda
