// Package pickle reads Python's pickles without executing them, and files of PyTorch's torch.save.
//
// A pickle is a program for a stack machine that builds Python objects (CPython's pickletools.py
// describes the instructions). Decode runs the instructions that describe data, of protocols 2 to
// 5; it knows no classes and calls nothing: a call or an instance becomes an Object with the name
// and the arguments of the call. Memory is proportional to the size of the pickle.
//
// A TorchFile is a file of torch.save, of version 1.6 and later: a zip archive with a pickle and the
// bytes of each tensor's storage. The pickle may name only classes and functions that tensors, PyTorch
// Geometric's data and NumPy's arrays need; others are refused with their position. Tensors become
// npy.Arrays, whose bytes stay in the mapped file if they are row-major. For any content the result is a
// value or a fault of kind Data that names the file and the position.
//
// Design note: github.com/nlpodyssey/gopickle reads these files too, but panics on damaged ones
// (an unknown instruction 0xff, a negative length) and allocates what a length claims.
package pickle
