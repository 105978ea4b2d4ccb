package engine

import (
	"siafu/kernels/task"
	"siafu/ranks/config"
	"siafu/ranks/tensor"
)

// Wishes are how a run has its tasks for functions cut, and how they travel.
func Wishes(c *config.Config) (tensor.Wishes, error) {
	codec, err := c.TaskCodec()
	return tensor.Wishes{
		Fused: c.With(config.Fusion), Thin: c.With(config.Rematerialisation),
		Form: task.Form{Halves: c.With(config.Streaming), Codec: codec},
	}, err
}
