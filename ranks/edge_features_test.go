package ranks

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/internal/fault"
)

// described gives edges dim features from -1 to 1.
type described struct {
	graph.EdgePairs
	dim int
}

// EdgeDim implements graph.FeaturedSource.
func (d described) EdgeDim() int { return d.dim }

// EachFeatures implements graph.FeaturedSource.
func (d described) EachFeatures(yield func(src, dst uint32, weight float32, features []float32) error) error {
	i, features := 0, make([]float32, d.dim)
	return d.Each(func(src, dst uint32) error {
		for j := range features {
			i++
			features[j] = float32(i*7%17-8) / 8
		}
		return yield(src, dst, 1, features)
	})
}

// meanFeatures returns the features of a content's edges by target and source: for repeated
// edges their mean, and for self loops the mean of the edges into the vertex.
func meanFeatures(c graph.Content) [][][]float64 {
	n, edges := int(c.Vertices), c.Edges.(graph.FeaturedSource)
	sums := make([][][]float64, n)
	for v := range sums {
		sums[v] = make([][]float64, n)
	}
	count := square(n)
	add := func(v, u int, features []float32) {
		sums[v][u] = append(sums[v][u], make([]float64, edges.EdgeDim()-len(sums[v][u]))...)
		for d, f := range features {
			sums[v][u][d] += float64(f)
		}
		count[v][u]++
	}
	edges.EachFeatures(func(s, d uint32, _ float32, features []float32) error {
		if add(int(d), int(s), features); c.Symmetrise {
			add(int(s), int(d), features)
		}
		return nil
	})
	for v, row := range sums {
		mean, into := make([]float64, edges.EdgeDim()), 0.0
		for u, f := range row {
			for d := range f {
				f[d] /= count[v][u]
				mean[d] += f[d]
			}
			into += min(count[v][u], 1)
		}
		for d := range mean {
			mean[d] /= max(into, 1)
		}
		row[v] = mean
	}
	return sums
}

// describedGraph returns a small graph with features on edges.
func describedGraph(t testing.TB, directed bool, dim int) string {
	c := smallGraph(directed, false, 3)
	c.Edges = described{c.Edges.(graph.EdgePairs), dim}
	return write(t, c)
}

// With several features of edges, losses equal those of one rank, with the same bits on any
// number of threads. They differ from losses without or with fewer features.
func TestEdgeFeaturesIndependentOfRanks(t *testing.T) {
	t.Parallel()
	for _, directed := range []bool{false, true} {
		run := func(dim, ranks int, set func(*Config)) []float64 {
			c := compared(t, 0.3)
			c.Model, c.Heads, c.Ranks, c.LR, c.Layers, c.Epochs = "gatv2", 2, ranks, 0.005, 3, 20
			set(&c)
			return train(t, c, describedGraph(t, directed, dim)).losses()
		}
		nothing := func(*Config) {}
		want := run(5, 1, nothing)
		if less := run(1, 1, nothing); math.Abs(want[19]-less[19]) < 1e-3 {
			t.Errorf("a loss of %v with five features and of %v with one", want[19], less[19])
		}
		for name, set := range map[string]func(*Config){
			"ranks": nothing, "order": func(c *Config) { c.VertexOrder = "rabbit" }, "nopipe": func(c *Config) { c.Mode = "nopipe" },
			"recompute": func(c *Config) { c.Recompute = true }, "plain Go": func(c *Config) { c.Kernel = "go" },
		} {
			sameLosses(t, name, run(5, 4, set), want, 1e-4)
		}
		for _, threads := range []int{2, 5} {
			if got := run(5, 1, func(c *Config) { c.Threads = threads }); !slices.Equal(got, want) {
				t.Errorf("%d threads: %v, want %v", threads, got, want)
			}
		}
	}
}

// A mini-batch that samples every edge, with its features, is exact training except for the
// order of sums, as in TestFullSampleIsExact. One that samples some edges has the same bits on
// any number of threads, and its losses depend on the features.
func TestSampledEdgeFeatures(t *testing.T) {
	t.Parallel()
	for _, directed := range []bool{false, true} {
		run := func(dim, ranks, threads int, batch string) []float64 {
			c := quick(t)
			c.Ranks, c.Servers, c.Threads, c.Epochs, c.EvalEvery, c.CacheInput = ranks, 0, threads, 10, 0, "off"
			c.Model, c.Heads, c.Layers, c.LR, c.Dropout, c.Optimizer, c.AttentionDropout = "gatv2", 2, 3, 0.05, 0.3, "sgd", 0.2
			c.Batch = batch
			return train(t, c, describedGraph(t, directed, dim)).losses()
		}
		want := run(5, 1, 2, "full")
		sameLosses(t, "neighbours", run(5, 3, 2, "neighbor:500,500,500,10000"), want, 1e-6)
		sameLosses(t, "clusters", run(5, 1, 2, "cluster:7,7"), want, 1e-6)
		for _, batch := range []string{"neighbor:2,3,2,10", "cluster:5,2"} {
			some := run(5, 2, 1, batch)
			if got := run(5, 2, 3, batch); !slices.Equal(got, some) {
				t.Errorf("%s: %v with three threads, %v with one", batch, got, some)
			}
			if less := run(1, 2, 1, batch); math.Abs(some[9]-less[9]) < 1e-5 {
				t.Errorf("%s: a loss of %v with five features and of %v with one", batch, some[9], less[9])
			}
		}
	}
}

// Nothing is stale if no rank is late, or on a single rank: with features and with weights of
// edges, bounded asynchrony and a fully asynchronous rank equal synchronous training.
func TestEdgesOutOfStepAsInStep(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{"features": describedGraph(t, true, 3), "weights": weightedGraph(t, true)} {
		c := compared(t, 0)
		c.Model, c.Heads, c.LR, c.Epochs, c.EvalEvery, c.Ranks, c.Servers, c.Intervals = "gatv2", 2, 0.005, 15, 1, 4, 0, 3
		want := train(t, c, data).losses()
		lingers := asynchronous(c, 1, 3)
		lingers.Linger, lingers.Out = 1e6, c.Out+"-async"
		sameLosses(t, name+", asynchronous", train(t, lingers, data).losses(), want, 1e-4)
		alone := freely(c, 1, 1, "every:3")
		alone.Out = c.Out + "-free"
		sameLosses(t, name+", free", train(t, alone, data).losses(), want, 1e-4)
	}
}

// Configurations that do not support features of edges are rejected. A network that was
// trained with features of edges does not predict with fewer.
func TestEdgeFeaturesRefused(t *testing.T) {
	t.Parallel()
	data := describedGraph(t, true, 3)
	var warning strings.Builder
	other := quick(t)
	other.Epochs = 1
	if err := Train(context.Background(), other, data, IO{Out: io.Discard, Err: &warning}); err != nil ||
		strings.Count(warning.String(), "have features; gcn ignores them") != 1 {
		t.Errorf("%v, warned %q", err, warning.String())
	}
	c := quick(t)
	c.Model, c.Epochs = "gatv2", 1
	train(t, c, data)
	for _, dim := range []int{2, 3} {
		p := PredictConfig{StallWarn: "1m", StallAbort: "1m", Out: t.TempDir() + "/p"}
		err := Predict(context.Background(), p, c.Out, describedGraph(t, true, dim), IO{Out: io.Discard, Err: io.Discard})
		if refused := fault.KindOf(err) == fault.Usage &&
			strings.Contains(err.Error(), "edges with 3 features"); refused != (dim == 2) || err != nil != refused {
			t.Errorf("%d features: %v", dim, err)
		}
	}
}

// The losses of GATv2 with 3, 8 and 20 features of edges equal those of record_edges.py,
// computed by PyTorch in float64. Float32 errors after twenty steps of plain descent are about
// 1e-6.
func TestLossesWithEdgeFeaturesOfPyTorch(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../kernels/testdata/edge_curves.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs []struct {
		Features, Layers, Heads, OutputHeads, Hidden int
		LR                                           float64
		EdgeFeatures                                 []float32
		Weights                                      map[string][]float32
		Loss64                                       []float64
	}
	if err := json.Unmarshal(text, &runs); err != nil {
		t.Fatal(err)
	}
	c := readCurves(t)
	for _, r := range runs {
		content := c.content("dense")
		content.Symmetrise = false
		pairs := slices.Clone(content.Edges.(graph.EdgePairs))
		content.Edges = graph.WithFeatures(pairs, r.Features,
			func(yield func(src, dst uint32, weight float32, features []float32) error) error {
				at := 0
				return pairs.Each(func(src, dst uint32) error {
					row := make([]float32, r.Features)
					if src != dst { // loops are not recorded
						at += copy(row, r.EdgeFeatures[at:])
					}
					return yield(src, dst, 1, row)
				})
			})
		data := write(t, content)
		for _, ranks := range []int{1, 4} {
			cfg := quick(t)
			cfg.Model, cfg.Layers, cfg.Hidden, cfg.Heads, cfg.OutputHeads = "gatv2", r.Layers, r.Hidden, r.Heads, r.OutputHeads
			cfg.Ranks, cfg.Epochs, cfg.Dropout, cfg.EvalEvery = ranks, len(r.Loss64), 0, 0
			cfg.Optimizer, cfg.LR, cfg.Momentum, cfg.WeightDecay, cfg.InnerDecay = "sgd", r.LR, 0, 0, 0
			spec := cfg.Network(c.Dense.Dim, c.Classes)
			spec.Design.EdgeDim = r.Features
			flat := make([]float32, spec.NumWeights())
			for _, p := range spec.Params() {
				if copy(p.Of(flat), r.Weights[p.Name]) != p.Len() {
					t.Fatalf("%d weights of %s", len(r.Weights[p.Name]), p.Name)
				}
			}
			cfg.Init = weightsFile(t, spec, flat)
			got := train(t, cfg, data).losses()
			sameLosses(t, fmt.Sprintf("%d features on %d ranks", r.Features, ranks), got[:len(r.Loss64)], r.Loss64, 2e-5)
		}
	}
}
