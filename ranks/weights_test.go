package ranks

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

// heavy gives edges weights from 0.25 to 3.25.
type heavy struct{ graph.EdgePairs }

// EachWeight implements graph.WeightedSource.
func (h heavy) EachWeight(yield func(src, dst uint32, weight float32) error) error {
	i := 0
	return h.Each(func(src, dst uint32) error {
		i++
		return yield(src, dst, 0.25+float32(i%7)/2)
	})
}

// weightedGraph returns a small graph with edge weights.
func weightedGraph(t testing.TB, directed bool) string {
	c := smallGraph(directed, false, 3)
	c.Edges = heavy{c.Edges.(graph.EdgePairs)}
	return write(t, c)
}

// With edge weights, losses equal those of one rank, in any order of vertices and in all
// modes. They differ from losses without weights.
func TestWeightsIndependentOfRanks(t *testing.T) {
	t.Parallel()
	short := compared(t, 0)
	short.Epochs = 20
	plain := train(t, short, write(t, smallGraph(true, false, 3))).losses()
	for _, directed := range []bool{false, true} {
		data := weightedGraph(t, directed)
		for _, kind := range []string{"gcn", "sage", "gatv2"} {
			if kind == "gatv2" && !directed {
				continue // the longest one, and the other direction occurs in gradients
			}
			run := func(ranks int, set func(*Config)) []float64 {
				c := compared(t, 0.3)
				c.Model, c.Ranks, c.LR, c.Layers, c.Epochs = kind, ranks, 0.005, 3, 20
				set(&c)
				return train(t, c, data).losses()
			}
			want := run(1, func(*Config) {})
			if math.Abs(want[19]-plain[19]) < 1e-3 {
				t.Errorf("%s: a loss of %v with weights and of %v without", kind, want[19], plain[19])
			}
			for name, set := range map[string]func(*Config){
				"ranks": func(*Config) {}, "order": func(c *Config) { c.VertexOrder = "rabbit" },
				"nopipe":    func(c *Config) { c.Mode = "nopipe" },
				"recompute": func(c *Config) { c.Recompute = true }, "plain Go": func(c *Config) { c.Kernel = "go" },
				"not kept": func(c *Config) { c.Order, c.CacheInput = "gather-first", "off" },
			} {
				sameLosses(t, kind+" "+name, run(4, set), want, 1e-4)
			}
		}
	}
}

// A mini-batch that samples every edge, with its weight, is exact training except for the
// order of sums, as in TestFullSampleIsExact. One that samples some edges has the same bits on
// any number of threads, and other losses than without weights.
func TestSampledWeights(t *testing.T) {
	t.Parallel()
	seed := hosttest.Turn(t, 2)
	for d, directed := range []bool{false, true} {
		data, plain := weightedGraph(t, directed), write(t, smallGraph(directed, false, 3))
		for k, kind := range []string{"gcn", "sage", "gin", "gatv2"} {
			if !hosttest.Sampled(2, d, k, seed) {
				continue
			}
			run := func(data string, ranks, threads int, batch string) []float64 {
				c := quick(t)
				c.Ranks, c.Servers, c.Threads, c.Epochs, c.EvalEvery, c.CacheInput = ranks, 0, threads, 10, 0, "off"
				c.Model, c.Heads, c.Layers, c.LR, c.Dropout, c.Optimizer, c.AttentionDropout = kind, 2, 3, 0.02, 0.3, "sgd", 0.2
				c.Batch = batch
				return train(t, c, data).losses()
			}
			want := run(data, 1, 2, "full")
			name := fmt.Sprint(kind, " directed: ", directed)
			sameLosses(t, name+" neighbours", run(data, 3, 2, "neighbor:500,500,500,10000"), want, 1e-6)
			sameLosses(t, name+" clusters", run(data, 1, 2, "cluster:7,7"), want, 1e-6)
			sameLosses(t, name+" a cluster", run(data, 1, 2, "cluster:1"), want, 1e-6)
			for _, batch := range []string{"neighbor:2,3,2,10", "cluster:5,2"} {
				some := run(data, 2, 1, batch)
				if got := run(data, 2, 3, batch); !slices.Equal(got, some) {
					t.Errorf("%s %s: %v with three threads, %v with one", name, batch, got, some)
				}
				if kind == "gatv2" {
					continue // without weights it is another network
				}
				if less := run(plain, 2, 1, batch); math.Abs(some[9]-less[9]) < 1e-5 {
					t.Errorf("%s %s: a loss of %v with weights and of %v without", name, batch, some[9], less[9])
				}
			}
		}
	}
}

// Options that do not support edge weights are refused with a remedy.
func TestWeightsRefused(t *testing.T) {
	t.Parallel()
	data := weightedGraph(t, false)
	for says, set := range map[string]func(*Config){
		"leave --pre-aggregate out": func(c *Config) { c.Ranks, c.PreAggregate = 3, "on" },
	} {
		c := quick(t)
		set(&c)
		err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: io.Discard})
		if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--drop-weights") {
			t.Errorf("%s: %v", says, err)
		}
	}
	var warning strings.Builder
	c := quick(t)
	c.Model, c.Epochs = "gat", 1
	if err := Train(context.Background(), c, data, IO{Out: io.Discard, Err: &warning}); err != nil ||
		strings.Count(warning.String(), "gat ignores them") != 1 {
		t.Errorf("%v, warned %q", err, warning.String())
	}
}

// A network trained with edge weights as features does not predict without them.
func TestFeaturesOfEdgesAreNeeded(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Model, c.Epochs = "gatv2", 1
	train(t, c, weightedGraph(t, true))
	p := PredictConfig{StallWarn: "1m", StallAbort: "1m", Out: t.TempDir() + "/p"}
	err := Predict(context.Background(), p, c.Out, write(t, smallGraph(true, false, 3)), IO{Out: io.Discard, Err: io.Discard})
	if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "edge weights") {
		t.Errorf("an answer all the same: %v", err)
	}
}
