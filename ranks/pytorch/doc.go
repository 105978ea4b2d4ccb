// Package pytorch is the way of weights to PyTorch and back: a Python file that rebuilds
// the network of a model.safetensors, and state dicts under the names that PyTorch
// Geometric's layers give their weights.
package pytorch
