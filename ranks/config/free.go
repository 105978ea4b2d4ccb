package config

import (
	"math"

	"siafu/halo/codec"
	"siafu/internal/fault"
	"siafu/kernels"
	"siafu/ranks/tune"
)

// Free is the fully asynchronous mode: ranks do not wait for each other (DIGEST-A).
const Free = "free"

// Asynchronous reports whether ranks train asynchronously.
func (c *Config) Asynchronous() bool { return c.Mode == "async" || c.Mode == Free }

// Pushes returns after how many of its own epochs a rank pushes its rows again (mode free).
func (c *Config) Pushes() int { return max(c.Ghosts().Epochs, 1) }

// MeanEpochs returns the number of last epochs over which weights are averaged (mode free).
func (c *Config) MeanEpochs() int { return min(10, c.Epochs/6) }

// OptimizerOf returns OptimizerConfig for the given number of graph ranks. In mode free,
// each rank makes one step per epoch, with gradients that are delayed by the steps of the
// other ranks. Therefore the learning rate is divided by the square root of the number of
// ranks, and Adam has no momentum: delays act as momentum (Mitliagkas et al., "Asynchrony
// begets momentum", 2016), and weights oscillate with both.
func (c *Config) OptimizerOf(ranks int) kernels.OptimizerConfig {
	o := c.OptimizerConfig()
	if c.Mode == Free && ranks > 1 {
		o.LR /= math.Sqrt(float64(ranks))
		o.Beta1 = 1e-9 // 0 stands for the default
	}
	return o
}

// CheckDelayBound returns an error if the given number of graph ranks cannot keep the
// bound.
func (c *Config) CheckDelayBound(ranks int) error {
	if c.Mode == Free && c.DelayBound > 0 && c.DelayBound < ranks-1 {
		return fault.New(fault.Usage, "train", "", "--delay-bound=%d with %d graph ranks", c.DelayBound, ranks).
			Then("use %d or more, because ranks that start together wait for each other's updates, or 0 for no bound", ranks-1)
	}
	return nil
}

// checkFree refuses options that the fully asynchronous mode does not support.
func (c *Config) checkFree() error {
	refuse := func(flag string, value any, remedy string) error {
		return fault.New(fault.Usage, "train", "", "--%s=%v with --mode=free", flag, value).Then("%s", remedy)
	}
	policy := c.Ghosts()
	rows, _ := codec.ByName(c.Codec)
	list, _ := tune.Candidates(c.Codec)
	_, fed := rows.(codec.Corrected)
	switch {
	case !policy.Pushes():
		return refuse("refresh", c.Refresh, "choose every:N to push rows every N epochs, or always to push them in each epoch")
	case c.Servers > 1:
		return refuse("servers", c.Servers, "use one server: updates are applied in their order of arrival, which differs between servers")
	case list != nil:
		return refuse("codec", c.Codec, "name the codec: no rank waits for rows, so epoch times do not show the fastest codec")
	case fed:
		return refuse("codec", c.Codec, "leave +ef out: error feedback needs rows in every epoch")
	case c.Tensor == TensorLambda:
		return refuse("tensor", c.Tensor, "choose cpu or cuda: functions need synchronous ranks or bounded asynchrony")
	case c.MeasureStaleness > 0:
		return refuse("measure-staleness", c.MeasureStaleness, "leave it out: an exact pass needs all ranks synchronously")
	case c.PreAggregate == "on":
		return refuse("pre-aggregate", c.PreAggregate, "leave it out: this mode stores rows of vertices, not sums")
	}
	return nil
}
