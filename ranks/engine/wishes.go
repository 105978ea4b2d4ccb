package engine

import (
	"siafu/kernels/task"
	"siafu/ranks/config"
	"siafu/ranks/tensor"
)

// Wishes returns the request options of a run: how tasks for functions are divided, and how
// they are sent.
func Wishes(c *config.Config) (tensor.Wishes, error) {
	codec, err := c.TaskCodec()
	return tensor.Wishes{
		Fused: c.With(config.Fusion), Thin: c.With(config.Rematerialisation),
		Form: task.Form{Halves: c.With(config.Streaming), Codec: codec},
	}, err
}
