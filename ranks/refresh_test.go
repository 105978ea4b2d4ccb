package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
)

// inTurns assigns n vertices to owners round-robin.
func inTurns(n, owners int) []int {
	list := make([]int, n)
	for v := range list {
		list[v] = v % owners
	}
	return list
}

// cut splits edges into those between vertices of one owner and the others.
func cut(edges graph.EdgePairs, owner []int) (own, others graph.EdgePairs) {
	for i := 0; i < len(edges); i += 2 {
		if owner[edges[i]] == owner[edges[i+1]] {
			own = append(own, edges[i], edges[i+1])
		} else {
			others = append(others, edges[i], edges[i+1])
		}
	}
	return own, others
}

// With never, ranks train as if the edges between them were not in the graph, to the last bit,
// and exchange no rows.
func TestNeverIsWithoutCutEdges(t *testing.T) {
	t.Parallel()
	const n, ranks = 90, 3
	owner := inTurns(n, ranks)
	whole := randomContent(n, 3)
	for y, symmetric := range []bool{true, false} {
		whole.Symmetrise = symmetric
		apart := whole
		apart.Edges, _ = cut(whole.Edges.(graph.EdgePairs), owner)
		for k, kind := range []string{"gcn", "sage", "gin", "gat", "gatv2"} {
			for g, gather := range []string{"float32", "bf16"} {
				if !hosttest.Sampled(2, k, g, y) {
					continue
				}
				name := fmt.Sprintf("%s symmetric=%t %s", kind, symmetric, gather)
				t.Run(name, func(t *testing.T) {
					run := func(content graph.Content, policy string) trained {
						data := write(t, content)
						partitionBy(t, data, "", ranks, owner...)
						c := compared(t, 0.3)
						c.Model, c.Ranks, c.Servers, c.LR, c.Epochs = kind, ranks, 0, 0.005, 12
						c.Refresh, c.Gather, c.CacheInput, c.VertexOrder, c.Hidden = policy, gather, "off", "natural", 8
						return train(t, c, data)
					}
					got, want := run(whole, "never"), run(apart, "always")
					for i, e := range got.Epochs {
						if e.Loss != want.Epochs[i].Loss {
							t.Fatalf("epoch %d has loss %v, without the edges %v", i+1, e.Loss, want.Epochs[i].Loss)
						}
						if e.GhostBytesRaw != 0 {
							t.Errorf("epoch %d has sent %d bytes of rows", i+1, e.GhostBytesRaw)
						}
					}
					s := model.Spec{Kind: kind, Dims: []int{whole.Features.Dim, 8, 3}, Heads: 1, OutputHeads: 1}
					if !slices.Equal(got.weights(t, s), want.weights(t, s)) {
						t.Error("the weights differ")
					}
				})
			}
		}
	}
}

// zeros returns a zero matrix of the size of m.
func zeros(m [][]float64) [][]float64 {
	z := make([][]float64, len(m))
	for v := range m {
		z[v] = make([]float64, len(m[v]))
	}
	return z
}

func transposed(a [][]float64) [][]float64 {
	m := make([][]float64, len(a[0]))
	for i := range m {
		for _, r := range a {
			m[i] = append(m[i], r[i])
		}
	}
	return m
}

// addedUp adds the rows b to a.
func addedUp(a [][]float64, b ...[]float64) [][]float64 {
	for v := range a {
		for j := range a[v] {
			a[v][j] += b[v%len(b)][j]
		}
	}
	return a
}

// descend subtracts a gradient.
func descend(w, grad [][]float64, lr float64) {
	for i := range w {
		for j := range w[i] {
			w[i][j] -= lr * grad[i][j]
		}
	}
}

func columnSums(a [][]float64) []float64 {
	sums := make([]float64, len(a[0]))
	for _, r := range a {
		for j, x := range r {
			sums[j] += x
		}
	}
	return sums
}

// The losses equal a second implementation of the policies in float64: 1e-5 allows the float32
// errors of 25 steps.
func TestPoliciesWrittenDownAgain(t *testing.T) {
	t.Parallel()
	const n, ranks, epochs, lr, seed = 60, 3, 25, 0.3, 7
	owner, content := inTurns(n, ranks), randomContent(n, 3)
	s := model.Spec{Kind: "gcn", Dims: []int{content.Features.Dim, 6, 3}}
	flat := make([]float32, s.NumWeights())
	s.Initialize(flat, "xavier", 4)
	setting := func(cached bool, mode string) Config {
		c := compared(t, 0)
		c.Ranks, c.Servers, c.Hidden, c.Epochs, c.LR, c.Mode, c.Seed = ranks, 0, 6, epochs, lr, mode, seed
		c.Optimizer, c.Momentum, c.WeightDecay, c.Init = "sgd", 0, 0, weightsFile(t, s, flat)
		c.CacheInput, c.Order, c.Intervals, c.PreAggregate, c.EvalEvery = "off", "apply-first", 2, "off", 9
		if cached {
			c.CacheInput, c.Order = "on", "auto"
		}
		return c
	}
	data := write(t, content)
	partitionBy(t, data, "", ranks, owner...)
	exact := map[bool]float64{} // the last loss with ghosts of the same epoch
	for _, cached := range []bool{false, true} {
		exact[cached] = train(t, setting(cached, "pipe"), data).losses()[epochs-1]
	}
	either := func(p func() seen) func(bool) seen { return func(bool) seen { return p() } }
	for policy, again := range map[string]func(backward bool) seen{
		"previous:none":    either(func() seen { return pipelined(0) }),
		"previous:F0.7":    func(backward bool) seen { return pipelined(map[bool]float64{false: 0.7}[backward]) },
		"previous:G0.7":    func(backward bool) seen { return pipelined(map[bool]float64{true: 0.7}[backward]) },
		"every:4":          func(backward bool) seen { return periodic(4, 0, backward) },
		"every:4,3":        func(backward bool) seen { return periodic(4, 3, backward) },
		"every:3,3":        func(backward bool) seen { return periodic(3, 3, backward) },
		"age:5":            func(backward bool) seen { return periodic(5, 0, backward) },
		"sample:0.6":       either(func() seen { return sampled(seed, 0.6) }),
		"every:2 no":       func(backward bool) seen { return unreturned(backward, periodic(2, 0, backward)) },
		"previous:none no": func(backward bool) seen { return unreturned(backward, pipelined(0)) },
		"delay:3":          either(func() seen { return delayed(3) }),
	} {
		for k, cached := range []bool{false, true} {
			for m, mode := range []string{"pipe", "nopipe"} {
				if !hosttest.Sampled(2, k, m, len(policy)) {
					continue
				}
				t.Run(fmt.Sprintf("%s cached=%t %s", policy, cached, mode), func(t *testing.T) {
					c := setting(cached, mode)
					name, no := strings.CutSuffix(policy, " no")
					c.GhostGradients = map[bool]string{true: "no", false: "yes"}[no]
					c.Refresh = name
					got := train(t, c, data)
					p := newStaleGCN(content, s, owner, flat, cached, again)
					var want []float64
					for range epochs {
						want = append(want, p.epoch(lr))
					}
					sameLosses(t, mode, got.losses()[:epochs], want, 1e-5)
					if d := math.Abs(exact[cached] - want[epochs-1]); d < 1e-3 {
						t.Errorf("ghosts of the same epoch would have led to the same loss but for %.2g: the test shows nothing", d)
					}
				})
			}
		}
	}
}

// In its limit each policy equals always, to the last bit: for every kind of network, with
// stochastic rounding, with error feedback, and with sums if supported.
func TestPoliciesInTheirLimits(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	settings := map[string]func(*Config){
		"gcn":           func(c *Config) { c.PreAggregate = "on" },
		"gat":           func(c *Config) { c.Model, c.Heads = "gat", 2 },
		"sage, int4+ef": func(c *Config) { c.Model, c.Codec, c.Recompute, c.Layers = "sage", "int4+ef", true, 3 },
		"gin, nopipe": func(c *Config) {
			c.Model, c.Mode, c.Codec, c.PreAggregate = "gin", "nopipe", "int8", "off"
			c.Gather = "bf16"
		},
		"gcn, kept, s2":   func(c *Config) { c.InputDropout, c.CacheInput, c.Codec, c.Servers = 0, "on", "s2", 1 },
		"gatv2":           func(c *Config) { c.Model, c.Heads, c.AttentionDropout = "gatv2", 2, 0.2 },
		"gat, five parts": func(c *Config) { c.Model, c.Codec, c.Parts = "gat", "bf16", 5 },
	}
	for k, name := range slices.Sorted(maps.Keys(settings)) {
		set := settings[name]
		run := func(policy string, sums bool) trained {
			c := quick(t)
			c.Ranks, c.Servers, c.Epochs, c.EvalEvery, c.LR, c.CheckpointEvery, c.RecomputeGhosts = 4, 0, 6, 0, 0.005, "off", "none"
			if set(&c); !sums { // not supported by sample
				c.PreAggregate = "off"
			}
			c.Refresh = policy
			return train(t, c, data)
		}
		want := map[bool]trained{true: run("always", true), false: run("always", false)}
		for p, policy := range []string{"every:1", "sample:1", "delay:0", "drift:0", "age:1,0.5"} {
			if !hosttest.Sampled(2, k, p) {
				continue
			}
			t.Run(name+" "+policy, func(t *testing.T) {
				sums := policy != "sample:1"
				if !sums && name == "gatv2" {
					t.Skip("it is refused")
				}
				if got := run(policy, sums); !bytes.Equal(got.model, want[sums].model) {
					t.Errorf("another model than that of always: loss %v, want %v", got.Summary.FinalLoss, want[sums].Summary.FinalLoss)
				}
			})
		}
		previous := run("previous:none", true)
		for p, policy := range []string{"every:1,1", "delay:1", "previous:GF0"} {
			if !hosttest.Sampled(2, k, p) {
				continue
			}
			t.Run(name+" "+policy, func(t *testing.T) {
				if !bytes.Equal(run(policy, true).model, previous.model) {
					t.Error("another model than that of previous")
				}
			})
		}
	}
}

// Without overlap, with lossless codecs, sums or servers, previous has the same bits. It
// trains every kind of network.
func TestPreviousWhateverElse(t *testing.T) {
	t.Parallel()
	data, seed := generated(t, true), hosttest.Turn(t, 2)
	for k, kind := range []string{"gcn", "sage", "gin", "gat", "gatv2"} {
		run := func(set func(*Config)) trained {
			c := quick(t)
			c.Model, c.Ranks, c.Servers, c.Epochs, c.Refresh, c.LR = kind, 4, 1, 20, "previous:none", 0.005
			set(&c)
			return train(t, c, data)
		}
		want := run(func(*Config) {})
		if first, last := want.Epochs[0].Loss, want.Summary.FinalLoss; !(last < first) {
			t.Errorf("%s: the loss goes from %v to %v", kind, first, last)
		}
		for name, set := range map[string]func(*Config){
			"again":  func(*Config) {},
			"nopipe": func(c *Config) { c.Mode = "nopipe" },
			"s2":     func(c *Config) { c.Codec = "s2" },
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				if got := run(set); !bytes.Equal(got.model, want.model) {
					t.Error("another model")
				}
			})
		}
		for i, codec := range []string{"int8", "bf16+ef", "none"} {
			if !hosttest.Sampled(2, i, k, seed) {
				continue
			}
			t.Run(kind+" sums "+codec, func(t *testing.T) {
				got := run(func(c *Config) {
					if c.Codec = codec; c.Network(1, 1).Adds() {
						c.PreAggregate = "on"
					}
				})
				// Coarser rows and another order of sums: close, not the same.
				if d := math.Abs(got.Summary.FinalLoss - want.Summary.FinalLoss); d > 0.1*want.Summary.FinalLoss {
					t.Errorf("final loss %v, want about %v", got.Summary.FinalLoss, want.Summary.FinalLoss)
				}
			})
		}
	}
}

// Incompatible options are refused with both flags' names.
func TestRefreshRefusals(t *testing.T) {
	t.Parallel()
	for _, set := range []func(*Config){
		func(c *Config) { c.Refresh, c.Mode = "previous:none", "async" },
		func(c *Config) { c.Refresh, c.Codec = "previous:none", "auto" },
		func(c *Config) { c.Refresh, c.CacheInput = "never", "on" },
		func(c *Config) { c.Refresh = "sometimes" },
		func(c *Config) { c.Refresh = "sample:1.5" },
		func(c *Config) { c.Refresh, c.Mode = "every:2", "async" },
		func(c *Config) { c.Refresh, c.Codec = "drift:0.1", "auto" },
		func(c *Config) { c.Refresh, c.PreAggregate = "sample:0.5", "on" },
	} {
		c := quick(t)
		set(&c)
		err := Train(context.Background(), c, t.TempDir(), IO{Out: io.Discard, Err: io.Discard})
		if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "--refresh") {
			t.Errorf("refresh=%s mode=%s codec=%s cache-input=%s: %v", c.Refresh, c.Mode, c.Codec, c.CacheInput, err)
		}
	}
}
