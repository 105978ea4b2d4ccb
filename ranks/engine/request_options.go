package engine

import (
	"siafu/kernels/task"
	"siafu/ranks/config"
	"siafu/ranks/tensor"
)

// RequestOptions returns the request options of a run: how tasks for functions are divided and
// sent.
func RequestOptions(c *config.Config) (tensor.RequestOptions, error) {
	codec, err := c.TaskCodec()
	return tensor.RequestOptions{
		Fused: c.With(config.Fusion), Recompute: c.With(config.Rematerialisation),
		Form: task.Form{Halves: c.With(config.Streaming), Codec: codec},
	}, err
}
