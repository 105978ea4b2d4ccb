// Package torchfile reads files of PyTorch's torch.save, of version 1.6 and later: a zip
// archive with a pickle and the bytes of each tensor's storage.
//
// The pickle is not executed (package pickle), and a name of a class or a function in it
// that files of tensors, of PyTorch Geometric's data or of NumPy's arrays have no need of is
// refused with its byte. Tensors become npy.Arrays, whose bytes stay where the file is
// mapped if they are stored in row-major order. For any content the result is a value or a
// fault of kind Data that names the file and the position.
package torchfile
