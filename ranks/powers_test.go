package ranks

import (
	"bytes"
	"fmt"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// kept returns a run of a network with powers of the graph computed before training.
func kept(t *testing.T, kind string) Config {
	c := compared(t, 0)
	c.Model, c.Layers, c.LR, c.InputDropout, c.CacheInput = kind, 3, 0.005, 0, "on"
	return c
}

// Cached powers equal those that an epoch would gather: losses differ only by the order of
// sums. This holds on any number of ranks, with dense and sparse features and edge weights, in
// bounded asynchrony of one interval, and for one fully asynchronous rank. 1e-4 is the
// tolerance of TestLossIndependentOfRanks for 50 steps of Adam. bf16 features may differ by
// two roundings of bf16, 2⁻⁸ each.
func TestCachedPowersAgree(t *testing.T) {
	t.Parallel()
	dense, sparse, weighted := generated(t, true), bag(t), weightedGraph(t, true)
	for k, kind := range []string{"sgc", "sign"} {
		for d, data := range []string{dense, sparse, weighted} {
			on := []string{"dense", "sparse", "weights"}[d]
			run := func(set func(*Config)) []float64 {
				c := kept(t, kind)
				c.Dropout = 0.3 // of hidden rows
				set(&c)
				return train(t, c, data).losses()
			}
			want := run(func(c *Config) { c.CacheInput = "off" })
			for name, of := range map[string]struct {
				tolerance float64
				set       func(*Config)
			}{
				"one rank":         {1e-4, func(*Config) {}},
				"three ranks":      {1e-4, func(c *Config) { c.Ranks, c.Servers = 3, 0 }},
				"servers":          {1e-4, func(c *Config) { c.Ranks, c.Servers, c.Codec = 6, 2, "s2" }},
				"sums":             {1e-4, func(c *Config) { c.Ranks, c.Servers, c.PreAggregate = 4, 0, "on" }},
				"made again":       {1e-4, func(c *Config) { c.Recompute, c.Intervals = true, 3 }},
				"asynchronous":     {1e-4, func(c *Config) { c.Mode, c.Intervals, c.Ranks, c.Servers = "async", 1, 1, 0 }},
				"at its own pace":  {1e-4, func(c *Config) { c.Mode, c.Refresh, c.Ranks, c.Servers = "free", "every:10", 1, 0 }},
				"bf16":             {1. / 128, func(c *Config) { c.Features, c.Ranks, c.Servers = "bf16", 3, 0 }},
				"stale everywhere": {1e-4, func(c *Config) { c.Refresh, c.Ranks, c.Servers = "previous:none", 3, 0 }},
			} {
				if on == "weights" && name == "sums" {
					continue // refused
				}
				if !hosttest.Sampled(2, k, d, len(name)) {
					continue
				}
				t.Run(fmt.Sprint(kind, " ", on, " ", name), func(t *testing.T) { sameLosses(t, name, run(of.set), want, of.tolerance) })
			}
		}
	}
}

// No rows are exchanged in an epoch. The powers are computed once for all epochs, from exact
// rows for any codec.
func TestCachedPowersAreExchangedOnce(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, kind := range []string{"sgc", "sign"} {
		c := kept(t, kind)
		c.Ranks, c.Servers = 4, 0
		want := train(t, c, data)
		for _, e := range want.Epochs {
			if e.GhostBytesRaw > 0 {
				t.Fatalf("%s: epoch %d exchanges %d bytes of rows", kind, e.Epoch, e.GhostBytesRaw)
			}
		}
		c.Codec = "int4"
		if got := train(t, c, data); !bytes.Equal(got.model, want.model) {
			t.Errorf("%s: another model with a codec", kind)
		}
		c.CacheInput = "off"
		if got := train(t, c, data); got.Epochs[0].GhostBytesRaw == 0 || bytes.Equal(got.model, want.model) {
			t.Errorf("%s: the choice does not show: %d bytes", kind, got.Epochs[0].GhostBytesRaw)
		}
	}
}
