package config

import (
	"math"

	"siafu/graph/fault"
	"siafu/halo/codec"
	"siafu/halo/refresh"
	"siafu/kernels"
	"siafu/ranks/tune"
)

// Free is the mode in which each rank goes at its own pace.
const Free = "free"

// Asynchronous tells whether ranks train without going in step.
func (c *Config) Asynchronous() bool { return c.Mode == "async" || c.Mode == Free }

// Pushes is after how many of its own epochs a rank pushes its rows again (free).
func (c *Config) Pushes() int { return max(c.Ghosts().Epochs, 1) }

// MeanEpochs is over how many epochs of a run, that are its last ones, weights are
// averaged where ranks go at their own pace (free).
func (c *Config) MeanEpochs() int { return min(10, c.Epochs/6) }

// OptimizerOf is OptimizerConfig with so many graph ranks. Where they go at their own pace
// (free) each of them has a step made an epoch, with gradients that are late by those
// of the others. So a step is shorter, by the root of their number, and Adam has no
// momentum: delays amount to one (Mitliagkas et al., "Asynchrony begets momentum",
// 2016), and with both of them weights swing.
func (c *Config) OptimizerOf(ranks int) kernels.OptimizerConfig {
	o := c.OptimizerConfig()
	if c.Mode == Free && ranks > 1 {
		o.LR /= math.Sqrt(float64(ranks))
		o.Beta1 = 1e-9 // 0 stands for the default
	}
	return o
}

// CheckDelayBound refuses a bound that so many graph ranks cannot keep.
func (c *Config) CheckDelayBound(ranks int) error {
	if c.Mode == Free && c.DelayBound > 0 && c.DelayBound < ranks-1 {
		return fault.New(fault.Usage, "train", "", "--delay-bound=%d with %d graph ranks", c.DelayBound, ranks).
			Then("use %d or more: ranks that have begun together wait for each other's updates at least, or 0 for no bound", ranks-1)
	}
	return nil
}

// checkFree refuses what ranks that go at their own pace do not do.
func (c *Config) checkFree() error {
	refuse := func(flag string, value any, remedy string) error {
		return fault.New(fault.Usage, "train", "", "--%s=%v with --mode=free", flag, value).Then("%s", remedy)
	}
	policy := c.Ghosts()
	rows, _ := codec.ByName(c.Codec)
	list, _ := tune.Candidates(c.Codec)
	_, fed := rows.(codec.Corrected)
	switch {
	case policy.Name != refresh.NameAlways && policy.Name != refresh.NameEvery || policy.Lag > 0:
		return refuse("refresh", c.Refresh, "choose every:N, N being the epochs after which a rank pushes its rows again, or always for each epoch")
	case c.Servers > 1:
		return refuse("servers", c.Servers, "use one server: updates are applied in the order in which they come, which is another one at each of several")
	case list != nil:
		return refuse("codec", c.Codec, "name the codec: nobody waits for rows, so that epochs do not show which one is fastest")
	case fed:
		return refuse("codec", c.Codec, "leave +ef out: rows are not sent in every epoch")
	case c.Tensor == TensorLambda:
		return refuse("tensor", c.Tensor, "choose cpu or cuda: functions are invoked by ranks in step, or in bounded asynchrony")
	case c.MeasureStaleness > 0:
		return refuse("measure-staleness", c.MeasureStaleness, "leave it out: an exact pass needs all ranks at once")
	case c.PreAggregate == "on":
		return refuse("pre-aggregate", c.PreAggregate, "leave it out: rows of vertices are kept, not sums")
	}
	return nil
}
