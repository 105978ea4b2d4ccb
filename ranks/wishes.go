//go:build lambda

package ranks

import (
	"siafu/kernels/task"
	"siafu/ranks/config"
	"siafu/ranks/tensor"
)

// wishes are how a run has its tasks for functions cut, and how they travel.
func (r *run) wishes() (tensor.Wishes, error) {
	c := &r.cfg
	codec, err := c.TaskCodec()
	return tensor.Wishes{
		Fused: c.With(config.Fusion), Thin: c.With(config.Rematerialisation),
		Form: task.Form{Halves: c.With(config.Streaming), Codec: codec},
	}, err
}
