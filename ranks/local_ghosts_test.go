package ranks

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/worldtest/slow"
	"siafu/kernels/model"
	"siafu/ranks/forecast"
)

// Sparse features that are gathered first use lists if the ghosts' features are cached, and
// dense rows if ghost rows are received, as the comparison below requires.
func TestLocalGhostsAreLists(t *testing.T) {
	t.Parallel()
	meta, err := graph.ReadMeta(bag(t))
	if err != nil {
		t.Fatal(err)
	}
	for how, want := range map[string]bool{"layers:1": true, "auto": true, "none": false, "all": false} {
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

// Ranks that compute their ghosts' rows exchange nothing in the first layers that gather, for
// each network, order of its products and number of layers, and nothing else changes. With one
// such layer, the first one, and products after the gather, all bits are the same, because the
// same rows are gathered in the same order. Otherwise another rank multiplies the ghosts'
// gradients and inputs, in another order of sums: about 1e-7 per step; 1e-5 allows 6 steps.
func TestLocalGhosts(t *testing.T) {
	t.Parallel()
	dense, sparse, seed := generated(t, true), bag(t), hosttest.Turn(t, 6)
	for k, kind := range model.Kinds() {
		for o, order := range []string{"gather-first", "apply-first"} {
			for d, data := range []string{dense, sparse} {
				for h, how := range []string{"layers:1", "layers:2", "all"} {
					if !hosttest.Sampled(6, 6*o+3*d+h, 5*k, seed) {
						continue
					}
					run := func(how string, set func(*Config)) trained {
						c := quick(t)
						c.Model, c.Order, c.RecomputeGhosts, c.Partitioner, c.PreAggregate = kind, order, how, "hash", "off"
						c.Layers, c.Hidden, c.Heads, c.Ranks, c.Servers, c.Epochs, c.EvalEvery, c.InputDropout = 3, 8, 2, 4, 1, 6, 3, 0.5
						if set != nil {
							set(&c)
						}
						return train(t, c, data)
					}
					t.Run(fmt.Sprint(kind, " ", order, " ", []string{"dense", "sparse"}[d], " ", how), func(t *testing.T) {
						net := network(t, data, func(c *Config) {
							c.Model, c.Order, c.Layers, c.InputDropout, c.RecomputeGhosts = kind, order, 3, 0.5, how
						})
						none, some := run("none", nil), run(how, nil)
						tolerance := 1e-5
						if net.LocalLayers == 0 || net.LocalLayers == 1 && net.GhostLayer() == 0 && net.Orders[0] == model.GatherFirst &&
							kind != "sage-pool" && !net.Attends() {
							tolerance = 0
						}
						sameLosses(t, kind, some.losses(), none.losses(), tolerance)
						sameLosses(t, "threads, no overlap",
							run(how, func(c *Config) { c.Threads, c.Mode = 3, "nopipe" }).losses(), some.losses(), 0)
						with, without := some.Epochs[1].GhostBytesRaw, none.Epochs[1].GhostBytesRaw
						if fewer := with < without; fewer != (net.LocalLayers > 0) ||
							(with == 0) != (net.LocalLayers == len(net.GatherLayers())) {
							t.Errorf("%d bytes in an epoch with rows of %d layers computed, %d without", with, net.LocalLayers, without)
						}
					})
				}
			}
		}
	}
}

// Three and four layers exchange nothing if the ghosts of several hops are computed, also along
// weighted edges, with bfloat16 rows, sums, intervals and recomputation. The same partitions give
// the same bits on fewer ranks.
func TestGhostsOfSeveralHops(t *testing.T) {
	t.Parallel()
	weighted, directed := weightedGraph(t, false), weightedGraph(t, true)
	for name, set := range map[string]func(*Config){
		"gcn, input kept":         func(c *Config) { c.InputDropout, c.CacheInput = 0, "on" },
		"gcn, four layers":        func(c *Config) { c.Layers, c.InputDropout, c.CacheInput = 4, 0, "on" },
		"sage, recompute":         func(c *Config) { c.Model, c.Recompute = "sage", true },
		"gin, no norm, intervals": func(c *Config) { c.Model, c.Norm, c.Jumping, c.Intervals = "gin", "off", "off", 3 },
		"layer norm":              func(c *Config) { c.Norm = "layer" },
		"rows bfloat16":           func(c *Config) { c.Gather = "bf16" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := func(how string, more func(*Config)) trained {
				c := quick(t)
				c.RecomputeGhosts, c.Partitioner, c.Ranks, c.Servers, c.Layers = how, "hash", 5, 0, 3
				c.Hidden, c.Epochs, c.EvalEvery, c.CheckpointEvery = 8, 10, 5, "off"
				set(&c)
				if more != nil {
					more(&c)
				}
				if c.Model == "sage" {
					return train(t, c, directed)
				}
				return train(t, c, weighted)
			}
			all, none := run("all", nil), run("none", nil)
			if n := all.Epochs[1].GhostBytesRaw; n != 0 {
				t.Errorf("%d bytes in an epoch", n)
			}
			tolerance := 1e-5
			if name == "rows bfloat16" { // an ulp of float32 may move a number to the next bfloat16, 2⁻⁸ away
				tolerance = 1e-3
			}
			sameLosses(t, "computed", all.losses(), none.losses(), tolerance)
			fewer := run("all", func(c *Config) { c.Parts, c.Ranks, c.Threads = 5, 2, 2 })
			if !bytes.Equal(fewer.model, all.model) {
				t.Error("five parts on two ranks: another model")
			}
		})
	}
}

// sparseGraph returns a graph of low degree, a cycle with some more edges, in which each of the
// first hops around a part has vertices that the hops before do not have. kind gives the edges
// weights or features.
func sparseGraph(t testing.TB, directed bool, kind func(graph.EdgePairs) graph.EdgeSource) string {
	t.Helper()
	const n, dim, classes = 240, 6, 3
	rng := rand.New(rand.NewPCG(9, 2))
	c := graph.Content{
		Name: "sparse", Vertices: n, Symmetrise: !directed, Classes: classes,
		Features: graph.Features{Rows: n, Dim: dim, Dense: make([]float32, n*dim)}, Labels: make([]int32, n), Split: make([]uint8, n),
	}
	var pairs graph.EdgePairs
	for v := range uint32(n) {
		if pairs = append(pairs, v, (v+1)%n); v%4 == 0 {
			pairs = append(pairs, rng.Uint32N(n), v)
		}
		c.Labels[v], c.Split[v] = rng.Int32N(classes), uint8(rng.IntN(4))
	}
	for i := range c.Features.Dense {
		c.Features.Dense[i] = float32(rng.NormFloat64())
	}
	c.Edges = kind(pairs)
	return write(t, c)
}

// The ghosts of one, two and all layers have the losses and weights of received rows, where hops
// differ: with attention, maxima, skipped layers and columns that are gathered in place, each with
// dropout, and along weighted edges and edges with features. The same partitions give the same bits
// on fewer ranks, with more threads and without overlap. Sums have another order: about 1e-7 per
// step of plain gradient descent; 1e-5 allows 6 steps. Weights are at most about 1.
func TestGhostsOfSparseGraph(t *testing.T) {
	t.Parallel()
	data := map[string]string{}
	for name, kind := range map[string]func(graph.EdgePairs) graph.EdgeSource{
		"":          func(p graph.EdgePairs) graph.EdgeSource { return p },
		"weighted ": func(p graph.EdgePairs) graph.EdgeSource { return heavy{p} },
		"featured ": func(p graph.EdgePairs) graph.EdgeSource { return described{p, 3} },
	} {
		data[name+"undirected"], data[name+"directed"] = sparseGraph(t, false, kind), sparseGraph(t, true, kind)
	}
	for k, tc := range hosttest.ShareOf(t, 3, []struct {
		kind, edges string
		layers      int
		set         func(*Config)
	}{
		{kind: "gcn", edges: "directed", layers: 3, set: func(c *Config) { c.Residual = "add" }},
		{kind: "gcn", edges: "weighted undirected", layers: 4, set: func(c *Config) { c.Residual, c.Order = "initial", "apply-first" }},
		{kind: "sage", edges: "directed", layers: 4},
		{kind: "sage", edges: "weighted undirected", layers: 4, set: func(c *Config) { c.Norm, c.Residual = "l2", "add" }},
		{kind: "gin", edges: "directed", layers: 4, set: func(c *Config) { c.Residual, c.Norm, c.Jumping = "add", "layer", "cat" }},
		{kind: "sage-max", edges: "undirected", layers: 3},
		{kind: "sage-max", edges: "directed", layers: 4, set: func(c *Config) { c.Residual, c.Recompute = "initial", true }},
		{kind: "sage-max", edges: "directed", layers: 3, set: func(c *Config) { c.CacheInput, c.InputDropout, c.Intervals = "on", 0, 3 }},
		{kind: "sage-pool", edges: "directed", layers: 4, set: func(c *Config) { c.PoolHidden = 5 }},
		{kind: "sage-pool", edges: "undirected", layers: 3, set: func(c *Config) { c.Norm, c.Recompute = "ball", true }},
		{kind: "gat", edges: "undirected", layers: 3, set: func(c *Config) { c.Heads, c.OutputHeads = 4, 2 }},
		{kind: "gat", edges: "directed", layers: 4, set: func(c *Config) { c.Recompute, c.Intervals = true, 3 }},
		{kind: "gat", edges: "directed", layers: 3, set: func(c *Config) { c.Residual, c.Norm, c.Jumping = "add", "layer", "max" }},
		{kind: "gatv2", edges: "undirected", layers: 3, set: func(c *Config) { c.Heads, c.OutputHeads = 4, 2 }},
		{kind: "gatv2", edges: "directed", layers: 4, set: func(c *Config) { c.Recompute, c.Residual = true, "initial" }},
		{kind: "gatv2", edges: "weighted directed", layers: 3},
		{kind: "gatv2", edges: "featured undirected", layers: 3, set: func(c *Config) { c.Intervals = 3 }},
		{kind: "gatv2", edges: "featured directed", layers: 4, set: func(c *Config) { c.Kernel = "go" }},
		{kind: "appnp", edges: "directed", layers: 3, set: func(c *Config) { c.Hops = 3 }},
		{kind: "appnp", edges: "weighted undirected", layers: 2, set: func(c *Config) { c.Hops, c.Recompute = 4, true }},
		{kind: "gcnii", edges: "directed", layers: 4},
		{kind: "gcnii", edges: "weighted undirected", layers: 3, set: func(c *Config) { c.Recompute, c.Intervals = true, 3 }},
		{kind: "sgc", edges: "weighted directed", layers: 3},
		{kind: "sign", edges: "directed", layers: 3, set: func(c *Config) { c.Powers = 3 }},
		{kind: "sign", edges: "weighted undirected", layers: 3, set: func(c *Config) { c.Powers, c.Intervals = 2, 3 }},
	}) {
		t.Run(fmt.Sprint(k, " ", tc.kind, " ", tc.edges), func(t *testing.T) {
			t.Parallel()
			ranks := 2 + k%3
			set := func(c *Config) {
				c.Model, c.Layers, c.Hidden, c.Heads, c.Partitioner, c.PreAggregate, c.CacheInput = tc.kind,
					tc.layers, 8, 2, "hash", "off", "off"
				c.Norm, c.Jumping, c.InputDropout, c.Dropout, c.Optimizer, c.LR, c.WeightDecay = "off", "off", 0.3, 0.3, "sgd", 0.2, 0
				c.Ranks, c.Servers, c.Epochs, c.EvalEvery, c.CheckpointEvery = ranks, 0, 6, 3, "off"
				if tc.set != nil {
					tc.set(c)
				}
			}
			run := func(how string, more func(*Config)) trained {
				c := quick(t)
				set(&c)
				if c.RecomputeGhosts = how; more != nil {
					more(&c)
				}
				return train(t, c, data[tc.edges])
			}
			none := run("none", nil)
			for h, how := range []string{"all", "layers:1", "layers:2"} {
				if how != "all" && !hosttest.Sampled(2, k, h) {
					continue
				}
				net := network(t, data[tc.edges], func(c *Config) { set(c); c.RecomputeGhosts = how })
				some := run(how, nil)
				sameLosses(t, how, some.losses(), none.losses(), 1e-5)
				want := none.weights(t, net)
				for i, w := range some.weights(t, net) {
					if d := math.Abs(float64(w - want[i])); !(d <= 1e-5) {
						t.Fatalf("%s: weight %d is %g, want %g", how, i, w, want[i])
					}
				}
				if n := some.Epochs[1].GhostBytesRaw; (n == 0) != (net.LocalLayers == len(net.GatherLayers())) ||
					n >= none.Epochs[1].GhostBytesRaw {
					t.Errorf("%s: %d bytes in an epoch, %d with received rows", how, n, none.Epochs[1].GhostBytesRaw)
				}
				fewer := run(how, func(c *Config) {
					if c.Parts, c.Ranks, c.Threads = ranks, 1, 3; k%2 == 0 {
						c.Mode = "nopipe"
					}
				})
				if !bytes.Equal(fewer.model, some.model) {
					t.Errorf("%s: %d parts on one rank: another model", how, ranks)
				}
			}
		})
	}
}

// network returns the network of a run, with the orders of its products.
func network(t *testing.T, data string, set func(*Config)) model.Spec {
	t.Helper()
	meta, err := graph.ReadMeta(data)
	if err != nil {
		t.Fatal(err)
	}
	c := quick(t)
	set(&c)
	net := c.NetworkOf(meta)
	c.Orders(&net, meta, true)
	return net
}

// Two layers with a cached input exchange no ghost rows, on 2 to 8 ranks, with each option that changes what
// a rank stores or sends. Losses differ from those with received rows by the order of sums: 1e-6 in 20
// epochs. Each option runs on one graph of each kind, with two of the numbers of ranks. The same partitions
// give the same bits on fewer ranks, with more threads and in another mode.
func TestCachedInputNeedsNoGhostRows(t *testing.T) {
	t.Parallel()
	dense, sparse := generated(t, true), bag(t)
	variants := map[string]func(*Config){
		"gcn":              func(*Config) {},
		"gcn, apply first": func(c *Config) { c.Hidden = 32 },
		"sage":             func(c *Config) { c.Model = "sage" },
		"gin":              func(c *Config) { c.Model, c.Norm, c.Jumping = "gin", "off", "off" },
		"layer norm":       func(c *Config) { c.Norm = "layer" },
		"jumping":          func(c *Config) { c.Jumping = "cat" },
		"recompute":        func(c *Config) { c.Recompute = true },
		"input bfloat16":   func(c *Config) { c.Features = "bf16" },
		"rows bfloat16":    func(c *Config) { c.Gather = "bf16" },
		"sums":             func(c *Config) { c.PreAggregate = "on" },
		"intervals":        func(c *Config) { c.Intervals = 3 },
		"server":           func(c *Config) { c.Servers = 1 },
		"int8":             func(c *Config) { c.Codec = "int8" },
	}
	for k, name := range slices.Sorted(maps.Keys(hosttest.Share(t, 2, variants))) {
		set := variants[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, ranks := range []int{2, 3, 5, 8} {
				if !hosttest.Sampled(2, k, i) {
					continue
				}
				data := []string{dense, sparse, sparse, dense}[i]
				run := func(how string, more func(*Config)) trained {
					c := quick(t)
					c.RecomputeGhosts, c.Partitioner, c.Ranks, c.Servers, c.CacheInput, c.InputDropout = how, "hash", ranks, 0, "on", 0
					c.Hidden, c.Epochs, c.EvalEvery, c.CheckpointEvery = 8, 20, 10, "off"
					set(&c)
					if c.Servers > 0 {
						c.Ranks += c.Servers
					}
					if more != nil {
						more(&c)
					}
					return train(t, c, data)
				}
				all := run("all", nil)
				for _, e := range all.Epochs {
					if e.GhostBytesRaw != 0 {
						t.Fatalf("%d ranks: %d bytes in epoch %d", ranks, e.GhostBytesRaw, e.Epoch)
					}
				}
				none := run("none", func(c *Config) { c.Codec = "none" })
				tolerance := 1e-6
				if name == "rows bfloat16" { // an ulp of float32 may move a number to the next bfloat16, 2⁻⁸ away
					tolerance = 1e-4
				}
				sameLosses(t, fmt.Sprint(ranks, " ranks"), all.losses(), none.losses(), tolerance)
				fewer := run("all", func(c *Config) {
					c.Parts, c.Ranks, c.Threads, c.Mode = ranks, c.Ranks-ranks+max(1, ranks/2), 2, "nopipe"
				})
				if !bytes.Equal(fewer.model, all.model) {
					t.Errorf("%d parts on %d ranks: another model", ranks, max(1, ranks/2))
				}
			}
		})
	}
}

// Ranks that compute ghost rows of one layer sum rows of the other layers before they send them, for
// each order of the first layer's products: fewer bytes are sent. The losses are those of one
// rank, except for the order of sums (1e-7 per step, 1e-5 for 12).
func TestLocalGhostsBesideSums(t *testing.T) {
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
						c.Model, c.Order, c.RecomputeGhosts, c.Partitioner, c.PreAggregate = kind, order, "layers:1", "hash", how
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
func TestLocalGhostsOfOneLayer(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	run := func(ranks int) trained {
		c := quick(t)
		c.Layers, c.Ranks, c.Servers, c.Epochs, c.InputDropout, c.RecomputeGhosts, c.EvalEvery = 1, ranks, 0, 10, 0.5, "all", 2
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
func TestLocalGhostsResumed(t *testing.T) {
	t.Parallel()
	data := bag(t)
	c := quick(t)
	c.Ranks, c.Servers, c.Epochs, c.InputDropout, c.Order, c.RecomputeGhosts, c.CheckpointEvery = 3, 0, 6, 0.5, "apply-first", "all", "2e"
	whole := train(t, c, data)
	c.Out, c.Epochs = c.Out+"-half", 4
	train(t, c, data)
	c.Resume, c.Epochs = c.Out, 6
	c.Out += "-rest"
	rest := train(t, c, data)
	sameLosses(t, "resumed", rest.losses()[len(rest.losses())-2:], whole.losses()[len(whole.losses())-2:], 0)
}

// working gives ranks fixed rates of work: seconds of tensor work per vertex, and a hundredth of them to
// gather along an edge.
func working(row float64) func(*member) {
	return func(r *member) {
		r.rates = func(f *forecast.Forecast) forecast.Rates {
			rates := forecast.Rates{Row: row, Edge: map[int]float64{}}
			for l := range f.Gathers() {
				rates.Edge[l] = row / 100
			}
			rates.Backward = rates.Edge
			return rates
		}
	}
}

// Ranks on several hosts compute their ghosts' rows where the link is slow, and receive them where
// work is slow and the link fast. A resumed run continues with the choice over any link.
func TestGhostsAreChosenByLink(t *testing.T) {
	data := wide(t)
	run := func(rate, row float64, set func(*Config)) (trained, string) {
		c := quick(t)
		c.Ranks, c.Servers, c.Epochs, c.EvalEvery, c.InputDropout, c.CacheInput, c.Partitioner, c.Hidden, c.CheckpointEvery = 3, 0,
			2, 0, 0, "on", "hash", 8, "1e"
		set(&c)
		r := trainOver(t, slow.NewNetwork(rate, 20*time.Microsecond), c, data, working(row))
		log, err := os.ReadFile(filepath.Join(c.Out, "log.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return r, string(log)
	}
	chosen := func(rate, row float64, choice string, set func(*Config)) trained {
		t.Helper()
		r, log := run(rate, row, set)
		if sends := r.Epochs[0].GhostBytesRaw > 0; !strings.Contains(log, "choice="+choice) || sends != (choice == "none") {
			t.Errorf("at %g bytes/s and %g s a vertex the choice is not %s: %s", rate, row, choice, log)
		}
		return r
	}
	far := chosen(1e6, 1e-8, "layers:1", func(*Config) {})
	chosen(1e6, 1e-8, "layers:1", func(c *Config) { c.Ranks, c.Servers = 4, 1 })
	chosen(0, 1e-2, "none", func(*Config) {})
	if t.Failed() {
		return
	}
	stale, log := run(1e6, 1e-8, func(c *Config) { c.Refresh, c.Ranks, c.Servers = "every:2", 4, 1 })
	if stale.Epochs[0].GhostBytesRaw == 0 || strings.Contains(log, "choice=") {
		t.Errorf("with stale rows %d bytes are sent: %s", stale.Epochs[0].GhostBytesRaw, log)
	}
	resumed, log := run(0, 1e-8, func(c *Config) { c.Resume, c.Epochs = far.Dir, 3 })
	if resumed.Epochs[len(resumed.Epochs)-1].GhostBytesRaw != 0 || strings.Contains(log, "choice=") {
		t.Errorf("resumed, %d bytes are sent: %s", resumed.Epochs[len(resumed.Epochs)-1].GhostBytesRaw, log)
	}
}

// Ranks on several hosts compute the rows of all layers over a slow link, with and without a server,
// and a resumed run continues with this choice. If the partitioning has not counted the ghosts of
// further hops, one layer is computed.
func TestGhostsOfSeveralHopsAreChosenByLink(t *testing.T) {
	data := wide(t)
	run := func(rate float64, set func(*Config)) (trained, string) {
		c := quick(t)
		c.Ranks, c.Servers, c.Epochs, c.EvalEvery, c.InputDropout, c.CacheInput, c.Partitioner, c.Hidden, c.Layers, c.CheckpointEvery = 3,
			0, 2, 0, 0, "on", "hash", 8, 3, "1e"
		set(&c)
		r := trainOver(t, slow.NewNetwork(rate, 20*time.Microsecond), c, data, working(1e-8))
		log, err := os.ReadFile(filepath.Join(c.Out, "log.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return r, string(log)
	}
	chosen := func(choice string, set func(*Config)) (r trained, log string) {
		t.Helper()
		if r, log = run(1e6, set); !strings.Contains(log, "choice="+choice) {
			t.Fatalf("the choice is not %s: %s", choice, log)
		}
		return r, log
	}
	far, _ := chosen("layers:2", func(*Config) {})
	served, _ := chosen("layers:2", func(c *Config) { c.Ranks, c.Servers = 4, 1 })
	resumed, log := run(0, func(c *Config) { c.Resume, c.Epochs = far.Dir, 3 })
	if strings.Contains(log, "choice=") {
		t.Errorf("a resumed run chooses: %s", log)
	}
	for _, r := range []trained{far, served, resumed} {
		if n := r.Epochs[len(r.Epochs)-1].GhostBytesRaw; n != 0 {
			t.Errorf("%d bytes are sent", n)
		}
	}
	withoutHops(t, filepath.Join(data, "parts", "3"))
	old, log := chosen("layers:1", func(*Config) {})
	if old.Epochs[0].GhostBytesRaw == 0 || !strings.Contains(log, "layers:2=not-counted") {
		t.Errorf("%d bytes are sent with an older partitioning: %s", old.Epochs[0].GhostBytesRaw, log)
	}
}

// withoutHops removes the counts of hops from the report of a partitioning, as older versions
// wrote it.
func withoutHops(t *testing.T, folder string) {
	t.Helper()
	path := filepath.Join(folder, "meta.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "checksum")
	for _, one := range m["report"].(map[string]any)["ranks"].([]any) {
		if _, ok := one.(map[string]any)["hops"]; !ok {
			t.Fatal("a rank has no hops")
		}
		delete(one.(map[string]any), "hops")
	}
	if text, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The memory of ghosts of several hops is estimated if an older partitioning has not counted them,
// within a half of what ranks allocate on a random graph, and exact if it has.
func TestOlderPartitionings(t *testing.T) {
	t.Parallel()
	data := planted(t, generate.Options{Vertices: 4200, Edges: 21000})
	c := quick(t)
	c.Ranks, c.Servers, c.Epochs, c.Hidden, c.Layers, c.PreAggregate, c.RecomputeGhosts, c.InputDropout = 3, 0,
		1, 20, 3, "off", "layers:2", 0
	run := train(t, c, data)
	check := func(counted bool, share float64) {
		t.Helper()
		f, parts := foreseen(t, c, data, 3, 0)
		if f.CountsGhosts(parts) != counted {
			t.Errorf("counted %t", !counted)
		}
		for rank, got := range run.Summary.PerRank {
			want := f.GraphRank(rank, parts[rank]).Of(forecast.Array)
			if d := float64(got.ArrayBytes-want) / float64(got.ArrayBytes); math.Abs(d) > share {
				t.Errorf("rank %d made arrays of %d bytes, estimated were %d", rank, got.ArrayBytes, want)
			}
		}
	}
	check(true, 0.001)
	withoutHops(t, filepath.Join(data, "parts", "3"))
	check(false, 0.5)
	c.Out += "-old"
	if again := train(t, c, data); !bytes.Equal(again.model, run.model) {
		t.Error("another model with an older partitioning")
	}
}

// Policies of stale ghosts act only on rows that are received. With two layers and a cached input
// none are, and losses are those of exact training, to the bit; with three layers fewer bytes are
// sent, and a resumed run has the bits of an uninterrupted one.
func TestStaleRowsAreTheReceivedOnes(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, policy := range []string{"every:3", "previous:none", "delay:2", "drift:0.05"} {
		t.Run(policy, func(t *testing.T) {
			run := func(set func(*Config)) trained {
				c := quick(t)
				c.Ranks, c.Servers, c.Partitioner, c.Hidden, c.Epochs, c.EvalEvery, c.InputDropout, c.CacheInput, c.CheckpointEvery = 4, 0,
					"hash", 8, 12, 3, 0, "on", "6e"
				c.RecomputeGhosts, c.Refresh = "layers:1", policy
				set(&c)
				return train(t, c, data)
			}
			exact, stale := run(func(c *Config) { c.Refresh = "always" }), run(func(*Config) {})
			sameLosses(t, "two layers", stale.losses(), exact.losses(), 0)
			three := run(func(c *Config) { c.Layers = 3 })
			all := run(func(c *Config) { c.Layers, c.RecomputeGhosts = 3, "none" })
			if with, without := three.Summary.GhostBytesRaw, all.Summary.GhostBytesRaw; with == 0 || with >= without {
				t.Errorf("three layers send %d bytes, and %d if all rows are received", with, without)
			}
			half := run(func(c *Config) { c.Layers, c.Epochs = 3, 6 })
			rest := run(func(c *Config) { c.Layers, c.Resume = 3, half.Dir })
			if !bytes.Equal(rest.model, three.model) {
				t.Error("resumed: another model")
			}
		})
	}
}

// A network whose ghosts' rows cannot be computed trains with received rows, and a warning.
func TestGhostsCannotBeComputed(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Norm, c.CacheInput, c.InputDropout, c.RecomputeGhosts, c.Ranks, c.Servers, c.Epochs = "batch", "on", 0, "all", 2, 0, 2
	var said strings.Builder
	if err := Train(context.Background(), c, generated(t, false), IO{Out: io.Discard, Err: &said}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "--recompute-ghosts=all has no effect") {
		t.Errorf("no warning: %s", said.String())
	}
	if readRun(t, c.Out).Epochs[1].GhostBytesRaw == 0 {
		t.Error("no rows are received")
	}
}
