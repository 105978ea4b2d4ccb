// Package safetensors reads and writes the safetensors format: the length of
// a JSON header as uint64, the header with type, shape and place of each
// tensor, then the data. PyTorch and others read it.
//
// Equal tensors and metadata give equal bytes. Reading is defensive: whatever
// the bytes are, the answer is tensors or a fault of kind Data that names the
// tensor.
package safetensors
