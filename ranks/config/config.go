package config

import (
	"math"
	"sync"

	"siafu/internal/size"
	"siafu/kernels"
	"siafu/kernels/model"

	"github.com/alecthomas/kong"
)

// Config has all options of a training run by group. The fields of the groups define the
// flags of "siafu train", the keys of its TOML file (the flag's name without leading dashes)
// and the config.toml of a run folder.
type Config struct {
	RankOptions       `embed:"" group:"Ranks"`
	ExchangeOptions   `embed:"" group:"Exchange"`
	ComputeOptions    `embed:"" group:"Compute"`
	FunctionOptions   `embed:"" group:"Functions"`
	ModelOptions      `embed:"" group:"Model"`
	TrainingOptions   `embed:"" group:"Training"`
	CheckpointOptions `embed:"" group:"Checkpoints"`
	OutputOptions     `embed:"" group:"Output"`
}

// Random numbers are identified by a layer with 16 bits, some of which are reserved, and an epoch
// with 32 bits.
const (
	mostLayers = 65_000
	mostEpochs = math.MaxInt32
	mostParts  = math.MaxInt32 // vertices have ids of 32 bits
)

// MostStaleness returns how many epochs an interval can be ahead; it never exceeds the
// number of epochs.
func (c *Config) MostStaleness() int { return min(c.Staleness, c.Epochs) }

// OptimizerConfig returns the settings of the optimiser.
func (c *Config) OptimizerConfig() kernels.OptimizerConfig {
	return kernels.OptimizerConfig{
		Name: c.Optimizer, LR: c.LR, Momentum: c.Momentum, WeightDecay: c.WeightDecay, InnerDecay: c.InnerDecay, InputScale: c.InputScale,
		Beta1: 0.9, Beta2: 0.999, Eps: 1e-8,
	}
}

// kind returns the description of the network.
func (c *Config) kind() *model.Kind { return model.KindOf(c.Model) }

// Network returns the network that the options describe.
func (c *Config) Network(features, classes int) model.Spec {
	hidden := c.Hidden
	if c.kind().Attends {
		hidden = size.Product(hidden, c.Heads)
	}
	s := model.Spec{
		Kind: c.Model, Design: c.design(), Dropout: c.Dropout,
		InputDropout: c.InputDropout, Seed: c.Seed,
	}
	if c.kind().Attends {
		s.Heads, s.OutputHeads, s.AttentionDropout = c.Heads, c.OutputHeads, c.AttentionDropout
		if c.AttentionDropout < 0 {
			s.AttentionDropout = c.Dropout
		}
	}
	s.Dims = s.Widths(c.Layers, features, hidden, classes)
	s.WholeRows = c.sendsWhole(s)
	switch {
	case c.InputDropout < 0 && (s.WholeRows || c.cachesInput(s)):
		s.InputDropout = 0
	case c.InputDropout < 0:
		s.InputDropout = c.Dropout
	}
	return s
}

// Defaults returns the configuration with all default values of the struct's tags.
func Defaults() Config { return defaults() }

var defaults = sync.OnceValue(func() Config {
	var c Config
	if err := kong.ApplyDefaults(&c, Variables()); err != nil {
		panic("config: a default does not fit its field")
	}
	c.Gather, c.Features, c.Products = "", "", "" // kong has validated them, and --precision is resolved later
	return c
})
