// Package pytorch converts weights to and from PyTorch. It writes a Python file that
// rebuilds the network of a model.safetensors, and reads state dicts with the weight names
// of PyTorch Geometric's layers.
package pytorch
