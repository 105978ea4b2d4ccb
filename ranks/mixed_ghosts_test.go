package ranks

import (
	"bytes"
	"fmt"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

// Ranks that compute the rows of some ghosts, and receive the others, have the losses of those that
// receive all, except for the order of sums (as TestLocalGhosts, 1e-5). The more they compute, the
// fewer bytes they send. The same partitions give the same bits on fewer ranks and in each mode.
func TestSomeGhostsAreComputed(t *testing.T) {
	t.Parallel()
	dense, weighted := generated(t, true), weightedGraph(t, false)
	for name, set := range hosttest.Share(t, 2, map[string]func(*Config){
		"gcn, input kept":   func(c *Config) { c.InputDropout, c.CacheInput = 0, "on" },
		"gcn, gather first": func(c *Config) { c.Order = "gather-first" },
		"gcn, apply first":  func(c *Config) { c.Order = "apply-first" },
		"sage, recompute":   func(c *Config) { c.Model, c.Recompute = "sage", true },
		"gin, intervals":    func(c *Config) { c.Model, c.Norm, c.Jumping, c.Intervals = "gin", "off", "off", 3 },
		"sums":              func(c *Config) { c.PreAggregate = "on" },
		"rows bfloat16":     func(c *Config) { c.Gather = "bf16" },
		"input bfloat16":    func(c *Config) { c.Features, c.InputDropout, c.CacheInput = "bf16", 0, "on" },
		"gat":               func(c *Config) { c.Model, c.Heads = "gat", 2 },
		"maxima":            func(c *Config) { c.Model = "sage-pool" },
		"appnp":             func(c *Config) { c.Model, c.Hops = "appnp", 2 },
		"server":            func(c *Config) { c.Servers, c.Ranks = 1, 5 },
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := weighted
			if name == "gat" || name == "maxima" || name == "sums" {
				data = dense
			}
			run := func(how string, more func(*Config)) trained {
				c := quick(t)
				c.RecomputeGhosts, c.Partitioner, c.Ranks, c.Servers, c.Layers, c.InputDropout = how, "hash", 4, 0, 3, 0.5
				c.Hidden, c.Epochs, c.EvalEvery, c.CheckpointEvery = 8, 6, 3, "off"
				set(&c)
				if more != nil {
					more(&c)
				}
				return train(t, c, data)
			}
			none := run("none", nil)
			before := none.Epochs[1].GhostBytesRaw
			layers := []string{"0.3", "0.7", "1", "1.4", "2"}
			if net := network(t, data, func(c *Config) { set(c); c.Layers, c.RecomputeGhosts = 3, "all" }); net.LocalLayers == 1 {
				layers = layers[:3]
			}
			tolerance := 1e-5
			if name == "rows bfloat16" { // an ulp of float32 may move a number to the next bfloat16, 2⁻⁸ away
				tolerance = 1e-3
			}
			for _, n := range layers {
				some := run("layers:"+n, nil)
				sameLosses(t, n+" layers", some.losses(), none.losses(), tolerance)
				sent := some.Epochs[1].GhostBytesRaw
				if sent >= before {
					t.Errorf("%s layers send %d bytes, fewer layers %d", n, sent, before)
				}
				before = sent
				again := run("layers:"+n, func(c *Config) {
					c.Parts, c.Ranks, c.Threads, c.Mode = 4, c.Ranks-2, 2, "nopipe"
				})
				if !bytes.Equal(again.model, some.model) {
					t.Errorf("%s layers, four parts on two ranks: another model", n)
				}
			}
		})
	}
}

// A codec with error feedback keeps the errors of received rows in checkpoints: a resumed run has
// the same bits.
func TestSomeGhostsResumed(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, codec := range []string{"none", "int4+ef", "auto"} {
		t.Run(codec, func(t *testing.T) {
			run := func(set func(*Config)) trained {
				c := quick(t)
				c.Ranks, c.Servers, c.Partitioner, c.Hidden, c.Epochs, c.EvalEvery, c.InputDropout, c.CheckpointEvery = 3,
					0, "hash", 8, 6, 0, 0.5, "2e"
				c.RecomputeGhosts, c.Layers, c.Codec = "layers:0.5", 2, codec
				set(&c)
				return train(t, c, data)
			}
			whole, half := run(func(*Config) {}), run(func(c *Config) { c.Epochs = 4 })
			rest := run(func(c *Config) { c.Resume = half.Dir })
			if codec != "auto" && !bytes.Equal(rest.model, whole.model) {
				t.Error("resumed: another model")
			}
		})
	}
}

// Fractions of a layer are refused where rows may be stale, and for numbers that are none.
func TestSomeGhostsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ how, refresh string }{{"layers:0", "always"}, {"layers:-1.5", "always"}, {"layers:x", "always"},
		{"layers:NaN", "always"}, {"layers:1e9", "always"}, {"layers:1.5", "every:2"}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			config := quick(t)
			config.RecomputeGhosts, config.Refresh = c.how, c.refresh
			if err := config.Validate(); fault.KindOf(err) != fault.Usage {
				t.Errorf("%v", err)
			}
		})
	}
}
