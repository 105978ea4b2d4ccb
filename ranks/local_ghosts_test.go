package ranks

import (
	"fmt"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/host/hosttest"
	"siafu/kernels/model"
)

// Sparse features that are gathered first use lists if the ghosts' features are cached, and
// dense rows if they are sent, as the comparison below requires.
func TestGhostFeaturesAreLists(t *testing.T) {
	t.Parallel()
	meta, err := graph.ReadMeta(bag(t))
	if err != nil {
		t.Fatal(err)
	}
	for how, want := range map[string]bool{"kept": true, "auto": true, "sent": false} {
		for _, kind := range []string{"gcn", "sage", "gin"} {
			c := quick(t)
			c.Model, c.Order, c.RecomputeGhosts, c.InputDropout, c.Hidden = kind, "gather-first", how, 0.5, 8
			net := c.NetworkOf(meta)
			if said := c.Orders(&net, meta, true); net.Listed != want || strings.Contains(said, "lists") != want {
				t.Errorf("%s, ghosts' features %s: lists %t: %s", kind, how, net.Listed, said)
			}
		}
	}
}

// Ranks with cached ghost features exchange nothing in the first layer, for each order of its
// products, and nothing else changes. With products after the gather all bits are the same,
// because the same rows are gathered in the same order. With products before it, another rank
// multiplies the ghosts' gradients and features, in another order of sums: about 1e-7 per
// step; 1e-5 allows 12 steps.
func TestGhostFeaturesCached(t *testing.T) {
	t.Parallel()
	dense, sparse := generated(t, true), bag(t)
	for k, kind := range model.Kinds() {
		network := model.KindOf(kind)
		for o, order := range []string{"gather-first", "apply-first"} {
			for d, data := range []string{dense, sparse} {
				if !hosttest.Sampled(2, k, o, d) {
					continue
				}
				name := []string{"dense", "sparse"}[d]
				run := func(how string, set func(*Config)) trained {
					c := quick(t)
					c.Model, c.Order, c.RecomputeGhosts, c.Partitioner, c.PreAggregate = kind, order, how, "hash", "off"
					c.Layers, c.Hidden, c.Heads, c.Ranks, c.Servers, c.Epochs, c.EvalEvery, c.InputDropout = 3, 8, 2, 4, 1, 12, 4, 0.5
					if set != nil {
						set(&c)
					}
					return train(t, c, data)
				}
				t.Run(fmt.Sprint(kind, " ", order, " ", name), func(t *testing.T) {
					sent, kept := run("sent", nil), run("kept", nil)
					tolerance := 0.
					if order == "apply-first" || network.Order == "apply-first" && !network.Dynamic {
						tolerance = 1e-5
					}
					sameLosses(t, kind, kept.losses(), sent.losses(), tolerance)
					sameLosses(t, "threads, no overlap", run("kept", func(c *Config) { c.Threads, c.Mode = 3, "nopipe" }).losses(), kept.losses(), 0)
					fewer := kept.Epochs[1].GhostBytesRaw < sent.Epochs[1].GhostBytesRaw
					if want := network.Propagates() && !network.Dynamic && !network.FixedDesign(); fewer != want {
						t.Errorf("%d bytes in an epoch with features of ghosts, %d without", kept.Epochs[1].GhostBytesRaw, sent.Epochs[1].GhostBytesRaw)
					}
				})
			}
		}
	}
}

// Ranks with cached ghost features sum rows of the other layers before they send them, for
// each order of the first layer's products: fewer bytes are sent. The losses are those of one
// rank, except for the order of sums (1e-7 per step, 1e-5 for 12).
func TestGhostFeaturesBesideSums(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for k, kind := range []string{"gcn", "sage", "gin"} {
		for o, order := range []string{"gather-first", "apply-first"} {
			for layers := 1; layers <= 3; layers += 2 {
				if !hosttest.Sampled(2, k, o, layers/2) {
					continue
				}
				t.Run(fmt.Sprint(kind, " ", order, " ", layers), func(t *testing.T) {
					run := func(ranks int, how string) trained {
						c := quick(t)
						c.Model, c.Order, c.RecomputeGhosts, c.Partitioner, c.PreAggregate = kind, order, "kept", "hash", how
						c.Layers, c.Hidden, c.Ranks, c.Servers, c.Epochs, c.EvalEvery, c.InputDropout = layers, 8, ranks, 0, 12, 4, 0.5
						return train(t, c, data)
					}
					one, on, off := run(1, "off"), run(4, "on"), run(4, "off")
					sameLosses(t, kind, on.losses(), one.losses(), 1e-5)
					with, without := on.Epochs[1].GhostBytesRaw, off.Epochs[1].GhostBytesRaw
					if fewer := with < without; fewer != (layers > 1) {
						t.Errorf("%d bytes in an epoch with sums, %d without", with, without)
					}
				})
			}
		}
	}
}

// A network of one layer exchanges nothing after the ghost features, not even in evaluations,
// and has the losses of one rank.
func TestGhostFeaturesOfOneLayer(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	run := func(ranks int) trained {
		c := quick(t)
		c.Layers, c.Ranks, c.Servers, c.Epochs, c.InputDropout, c.RecomputeGhosts, c.EvalEvery = 1, ranks, 0, 10, 0.5, "kept", 2
		return train(t, c, data)
	}
	many := run(4)
	sameLosses(t, "four ranks", many.losses(), run(1).losses(), 1e-5)
	for _, e := range many.Epochs {
		if e.GhostBytesRaw != 0 {
			t.Errorf("epoch %d: %d bytes", e.Epoch, e.GhostBytesRaw)
		}
	}
}

// A killed run resumes with the same bits.
func TestGhostFeaturesResumed(t *testing.T) {
	t.Parallel()
	data := bag(t)
	c := quick(t)
	c.Ranks, c.Servers, c.Epochs, c.InputDropout, c.Order, c.RecomputeGhosts, c.CheckpointEvery = 3, 0, 6, 0.5, "apply-first", "kept", "2e"
	whole := train(t, c, data)
	c.Out, c.Epochs = c.Out+"-half", 4
	train(t, c, data)
	c.Resume, c.Epochs = c.Out, 6
	c.Out += "-rest"
	rest := train(t, c, data)
	sameLosses(t, "resumed", rest.losses()[len(rest.losses())-2:], whole.losses()[len(whole.losses())-2:], 0)
}
