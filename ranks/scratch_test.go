package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

// Values in a scratch file give the bits of values in memory, for each network that gathers sums, with
// and without cached ÂX, recomputation, and several ranks.
func TestScratchGivesTheSameBits(t *testing.T) {
	t.Parallel()
	seed := hosttest.Turn(t, 4)
	for d, directed := range []bool{false, true} {
		data := filepath.Join(t.TempDir(), "planted")
		if _, err := generate.Write(data,
			generate.Options{Vertices: 5000, Edges: 20000, Features: 40, Classes: 30, Seed: 5, Directed: directed}, false); err != nil {
			t.Fatal(err)
		}
		for k, kind := range []string{"gcn", "sage", "gin", "gcnii"} {
			for _, layers := range []int{2, 3} {
				for ranks := 1; ranks <= 2; ranks++ {
					if !hosttest.Sampled(4, d, k, layers, ranks, seed) {
						continue // each kind, and each pair of the others, runs
					}
					name := fmt.Sprintf("%s directed=%t layers=%d ranks=%d", kind, directed, layers, ranks)
					t.Run(name, func(t *testing.T) {
						c := quick(t)
						c.Model, c.Layers, c.Hidden, c.Epochs, c.Ranks, c.Servers, c.Intervals = kind, layers, 32, 3, ranks, 0, 5
						c.Recompute = (k+layers+ranks)%2 > 0
						if c.CacheInput = "off"; (k+layers)%2 > 0 {
							c.CacheInput, c.InputDropout = "on", 0
						}
						want := train(t, c, data)
						c.Out += "-scratch"
						c.Scratch, c.Memory, c.ForceMemory = t.TempDir(), "1MB", true
						got := train(t, c, data)
						if !bytes.Equal(got.model, want.model) {
							t.Error("the weights differ")
						}
						for _, r := range got.Summary.PerRank {
							if r.ScratchBytes == 0 {
								t.Errorf("rank %d has no scratch file", r.Rank)
							}
						}
					})
				}
			}
		}
	}
}

// With a limit of memory, a single rank stores most values only for the intervals that run, and gives the
// bits and the metrics of a run without a limit.
func TestValuesOfRunningIntervals(t *testing.T) {
	t.Parallel()
	data, relations := generated(t, false), filepath.Join(t.TempDir(), "relations")
	if _, err := graph.Write(relations, relatedGraph(5, true, 1), false); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(c *Config){
		"dropout":            func(c *Config) {},
		"without dropout":    func(c *Config) { c.Dropout, c.InputDropout = 0, 0 },
		"layers that add":    func(c *Config) { c.Layers, c.Residual, c.Norm = 4, "add", "layer" },
		"jumping":            func(c *Config) { c.Layers, c.Jumping = 3, "cat" },
		"norm over vertices": func(c *Config) { c.Layers, c.Norm = 3, "batch" },
		"isomorphism":        func(c *Config) { c.Model, c.Layers = "gin", 3 },
		"products first":     func(c *Config) { c.Layers, c.Order = 3, "apply-first" },
		"perceptron":         func(c *Config) { c.Model = "mlp" },
		"attention":          func(c *Config) { c.Model, c.Heads = "gat", 2 },
		"maxima":             func(c *Config) { c.Model = "sage-max" },
		"powers":             func(c *Config) { c.Model, c.Hops = "sgc", 2 },
		"initial residuals":  func(c *Config) { c.Model, c.Layers = "gcnii", 4 },
		"half rows":          func(c *Config) { c.Gather = "bf16" },
		"metric":             func(c *Config) { c.Monitor = "macro_f1" },
		"smoothing":          func(c *Config) { c.LabelSmoothing = 0.1 },
		"two classes":        func(c *Config) { c.Task = "multilabel" },
		"one thread":         func(c *Config) { c.Threads = 1 },
		"half rows, deep":    func(c *Config) { c.Gather, c.Layers, c.Residual = "bf16", 4, "add" },
		"slices":             func(c *Config) { c.Hidden, c.Order, c.Slices, c.Scratch = 40, "gather-first", 2, t.TempDir() },
		"slices, deep":       func(c *Config) { c.Hidden, c.Layers, c.Slices, c.Scratch, c.Residual = 40, 4, 3, t.TempDir(), "add" },
		"slices, half rows": func(c *Config) {
			c.Hidden, c.Order, c.Slices, c.Gather, c.Scratch = 40, "gather-first", 3, "bf16", t.TempDir()
		},
		"slices of input": func(c *Config) {
			c.Hidden, c.Order, c.Slices, c.CacheInput, c.Scratch = 40, "gather-first", 2, "off", t.TempDir()
		},
		"slices, products": func(c *Config) {
			c.Layers, c.Hidden, c.Order, c.Model, c.Slices, c.Scratch = 3, 40, "apply-first", "sage", 2, t.TempDir()
		},
		"ranks":            func(c *Config) { c.Ranks = 3 },
		"ranks, deep":      func(c *Config) { c.Ranks, c.Layers, c.Dropout, c.RecomputeGhosts = 2, 4, 0, "none" },
		"ranks, half rows": func(c *Config) { c.Ranks, c.Gather, c.Layers = 2, "bf16", 3 },
		"ranks, stale":     func(c *Config) { c.Ranks, c.Refresh = 2, "every:2" },
		"ranks, products":  func(c *Config) { c.Ranks, c.Layers, c.Order, c.Model = 3, 3, "apply-first", "sage" },
		"relations":        func(c *Config) { c.Model, c.Hidden = "rgcn", 2 },
		"relations, deep":  func(c *Config) { c.Model, c.Ranks, c.Layers, c.Jumping, c.Norm = "rgcn", 2, 3, "last", "layer" },
		"relations, ranks": func(c *Config) { c.Model, c.Hidden, c.Ranks, c.Dropout = "rgcn", 2, 3, 0 },
		"typed attention":  func(c *Config) { c.Model, c.Ranks = "hgn", 2 },
	} {
		t.Run(name, func(t *testing.T) {
			c, data := quick(t), data
			if strings.Contains(name, "relation") || strings.Contains(name, "typed") {
				data = relations
			}
			c.Hidden, c.Epochs, c.Ranks, c.Servers, c.Intervals, c.Threads = 16, 4, 1, 0, 9, 3
			set(&c)
			limited := c
			c.Slices, c.Scratch = 0, ""
			want := train(t, c, data)
			c.Slices, c.Scratch = limited.Slices, limited.Scratch
			c.Out += "-limited"
			c.Memory, c.ForceMemory = "1MB", true
			got := train(t, c, data)
			if !bytes.Equal(got.model, want.model) {
				t.Error("the weights differ")
			}
			if !reflect.DeepEqual(got.Summary.Metrics, want.Summary.Metrics) || want.Summary.Metrics == nil {
				t.Error("the metrics differ")
			}
		})
	}
}

// A run that exceeds its memory or its disk is refused before it trains.
func TestScratchRefuses(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for name, want := range map[string]struct {
		set  func(*Config)
		kind fault.Kind
		text string
	}{
		"memory":            {func(c *Config) { c.Memory = "1MB" }, fault.Config, "--memory scratch=DIR"},
		"memory, attention": {func(c *Config) { c.Memory, c.Model = "1MB", "gat" }, fault.Config, "; use more ranks, or raise --memory"},
		"memory, scratch":   {func(c *Config) { c.Memory, c.Scratch = "1MB", t.TempDir() }, fault.Config, "raise --memory"},
		"folder":            {func(c *Config) { c.Scratch = "/none" }, fault.Missing, "/none"},
		"number":            {func(c *Config) { c.Memory = "much" }, fault.Usage, "8GB"},
		"attention":         {func(c *Config) { c.Model, c.Scratch = "gat", t.TempDir() }, fault.Usage, "--memory scratch=DIR"},
		"bounded asynchony": {func(c *Config) { c.Mode, c.Scratch = "async", t.TempDir() }, fault.Usage, "--mode"},
		"mini-batches":      {func(c *Config) { c.Batch, c.Scratch = "neighbor:5,5", t.TempDir() }, fault.Usage, "--batch"},
	} {
		t.Run(name, func(t *testing.T) {
			c := quick(t)
			want.set(&c)
			err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard})
			if fault.KindOf(err) != want.kind || !strings.Contains(err.Error(), want.text) {
				t.Errorf("%v", err)
			}
		})
	}
}
