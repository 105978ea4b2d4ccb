package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/kernels/model"
)

// measured returns a run of three ranks whose staleness is measured.
func measured(t *testing.T, change func(c *Config)) Config {
	c := quick(t)
	c.Ranks, c.Servers, c.Threads, c.Epochs, c.Refresh, c.MeasureStaleness = 3, 0, 1, 6, "previous:none", 2
	change(&c)
	return c
}

// Measurements do not change a run.
func TestMeasuringStalenessChangesNothing(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for name, change := range map[string]func(c *Config){
		"previous":           func(c *Config) {},
		"never":              func(c *Config) { c.Refresh = "never" },
		"fed back, servers":  func(c *Config) { c.Codec, c.Ranks, c.Servers = "int4+ef", 4, 1 },
		"gat, nopipe":        func(c *Config) { c.Model, c.Mode = "gat", "nopipe" },
		"sage, recompute":    func(c *Config) { c.Model, c.Recompute, c.Layers = "sage", true, 3 },
		"gin, never, parts":  func(c *Config) { c.Model, c.Refresh, c.Parts, c.Ranks = "gin", "never", 3, 2 },
		"drift":              func(c *Config) { c.Refresh, c.Codec = "drift:0.1,3", "bf16" },
		"age, no gradients":  func(c *Config) { c.Refresh, c.GhostGradients = "age:2,0.9", "no" },
		"gat, delay":         func(c *Config) { c.Model, c.Refresh = "gat", "delay:2" },
		"predicted":          func(c *Config) { c.Predict, c.Refresh, c.Epochs = "transfer", "every:3", 8 },
		"predicted, gat":     func(c *Config) { c.Predict, c.Model, c.Dropout, c.Epochs = "transfer", "gat", 0, 8 },
		"previous, ÂX, bf16": func(c *Config) { c.InputDropout, c.CacheInput, c.Gather = 0, "on", "bf16" },
	} {
		t.Run(name, func(t *testing.T) {
			c := measured(t, change)
			with := train(t, c, data)
			c.MeasureStaleness = 0
			without := train(t, c, data)
			if !bytes.Equal(with.model, without.model) {
				t.Error("the models differ")
			}
			for i, e := range with.Epochs {
				if e.Loss != without.Epochs[i].Loss || e.GhostBytesSent != without.Epochs[i].GhostBytesSent {
					t.Errorf("epoch %d has loss %v and sends %d bytes, without measurements %v and %d", i+1, e.Loss, e.GhostBytesSent,
						without.Epochs[i].Loss, without.Epochs[i].GhostBytesSent)
				}
				if (e.Staleness != nil) != (i%2 == 0) || without.Epochs[i].Staleness != nil {
					t.Errorf("epoch %d has %v", i+1, e.Staleness)
				}
			}
		})
	}
}

// With constant weights, rows of the previous epoch are exact, and one epoch later per layer
// also their gradients. Before any row has arrived, all of H is missing.
func TestNothingIsStaleWhereWeightsStand(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for _, kind := range []string{"gcn", "gat"} {
		c := measured(t, func(c *Config) {
			c.Model, c.Optimizer, c.Momentum, c.LR, c.Dropout, c.MeasureStaleness, c.CacheInput = kind, "sgd", 0, 1e-30, 0, 1, "off"
		})
		epochs := train(t, c, data).Epochs
		for i, e := range epochs {
			if norm := e.Staleness.GradientNorm; norm <= 0 || norm != epochs[0].Staleness.GradientNorm {
				t.Errorf("%s: epoch %d: the norm of the exact gradient is %v", kind, i+1, norm)
			}
			if len(e.Staleness.Layers) != 2 {
				t.Fatalf("%s: %d layers", kind, len(e.Staleness.Layers))
			}
			for _, l := range e.Staleness.Layers {
				if want := float64(0); i == 0 && l.Relative != 1 || i > 1 && l.Relative != want {
					t.Errorf("%s: epoch %d: layer %d is stale by %v", kind, i+1, l.Layer, l.Relative)
				}
				if l.MeanAge != 1 || l.MaxAge != 1 || l.Ghosts == 0 {
					t.Errorf("%s: epoch %d: layer %d: %d rows are %v epochs old, at most %d", kind, i+1, l.Layer,
						l.Ghosts, l.MeanAge, l.MaxAge)
				}
			}
			if g := e.Staleness.GradientError; i == 0 && g == 0 || i > 3 && g != 0 {
				t.Errorf("%s: epoch %d: the gradient is off by %v", kind, i+1, g)
			}
		}
	}
}

// Without ghosts all of H is missing, and the gradient is not exact.
func TestNeverMissesAllOfH(t *testing.T) {
	t.Parallel()
	c := measured(t, func(c *Config) { c.Refresh = "never" })
	for _, l := range train(t, c, generated(t, false)).Epochs[0].Staleness.Layers {
		if l.Relative != 1 || l.Ghosts != 0 {
			t.Errorf("layer %d uses %d rows, stale by %v", l.Layer, l.Ghosts, l.Relative)
		}
	}
}

// SAT, equation 6: "δH̃(ℓ,m) := ‖H_out(ℓ,m) - H̃_out(ℓ,m)‖". In the first layer of
// (X W) the rows of ghosts are known: those of the epoch are X W, those of the epoch
// before X W', so that the norm is that of X_out (W - W'), here over all ranks.
func TestStalenessIsEquationSix(t *testing.T) {
	t.Parallel()
	const n, ranks = 90, 3
	content, owner := randomContent(n, 3), inTurns(n, ranks)
	data := write(t, content)
	partitionBy(t, data, "", ranks, owner...)
	s := model.Spec{Kind: "gcn", Dims: []int{content.Features.Dim, 8, 3}}
	first := make([]float32, s.NumWeights())
	for i := range first {
		first[i] = float32(math.Sin(float64(i)))
	}
	c := measured(t, func(c *Config) {
		c.Ranks, c.Hidden, c.Dropout, c.LR, c.EvalEvery, c.MeasureStaleness = ranks, 8, 0, 0.1, 0, 1
		c.Order, c.CacheInput, c.PreAggregate, c.Init = "apply-first", "off", "off", weightsFile(t, s, first)
	})
	c.Epochs = 1
	second := train(t, c, data).weights(t, s)
	c.Epochs = 2
	got := train(t, c, data).Epochs[1].Staleness.Layers[0]
	seen, sum := map[[2]int]bool{}, 0.0
	visit := func(u, v uint32) {
		at := [2]int{int(u), owner[v]}
		if owner[u] == owner[v] || seen[at] {
			return
		}
		seen[at] = true
		for j := range 8 {
			d := 0.0
			for k := range content.Features.Dim {
				w := k*8 + j
				d += float64(content.Features.Dense[int(u)*content.Features.Dim+k]) * (float64(second[w]) - float64(first[w]))
			}
			sum += d * d
		}
	}
	pairs := content.Edges.(graph.EdgePairs)
	for i := 0; i < len(pairs); i += 2 {
		visit(pairs[i], pairs[i+1])
		visit(pairs[i+1], pairs[i])
	}
	// Rows of 8 products in float32, whose differences are a tenth of them.
	if want := math.Sqrt(sum); math.Abs(got.Difference-want) > 1e-4*want || got.Ghosts != int64(len(seen)) {
		t.Errorf("‖H - H̃‖ of %d ghosts is %v, want %v of %d", got.Ghosts, got.Difference, want, len(seen))
	}
}

// Measurement is refused for runs without staleness.
func TestMeasuringStalenessIsRefused(t *testing.T) {
	t.Parallel()
	for _, change := range []func(c *Config){
		func(c *Config) { c.Refresh = "always" },
		func(c *Config) { c.MeasureStaleness = -1 },
		func(c *Config) { c.Tensor, c.Lambda = "lambda", "local" },
	} {
		err := Train(context.Background(), measured(t, change), "nowhere", IO{Out: io.Discard, Err: io.Discard})
		if fault.KindOf(err) != fault.Usage || !strings.Contains(fmt.Sprint(err), "measure-staleness") {
			t.Error(err)
		}
	}
}
