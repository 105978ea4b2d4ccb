// Package torchfile reads files of PyTorch's torch.save, of version 1.6 and later: a zip
// archive with a pickle and the bytes of each tensor's storage.
//
// The pickle is not executed (package pickle). It may name only classes and functions that
// tensors, PyTorch Geometric's data and NumPy's arrays need; others are refused with their
// position. Tensors become npy.Arrays, whose bytes stay in the mapped file if they are
// row-major. For any content the result is a value or a fault of kind Data that names the file
// and the position.
package torchfile
