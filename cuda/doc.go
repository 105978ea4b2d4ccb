// Package cuda holds the tensor and graph tasks of an epoch on an NVIDIA
// GPU. This build has none of them yet: --tensor cuda is refused with that
// sentence.
package cuda
