package config

import (
	"math"

	"siafu/internal/fault"
	"siafu/kernels"
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
		return fault.New(fault.Usage, "train", "", "--mode delay-bound=%d with %d graph ranks", c.DelayBound, ranks).
			Then("use %d or more, because ranks that start together wait for each other's updates, or 0 for no bound", ranks-1)
	}
	return nil
}
