// Package safetensors reads and writes the safetensors format: the length of a JSON header
// as uint64, the header with type, shape and offsets of each tensor, then the data. PyTorch
// and other programs read it.
//
// Equal tensors and metadata give equal bytes. Input is not trusted: the result is tensors
// or a fault of kind Data that names the tensor.
package safetensors
