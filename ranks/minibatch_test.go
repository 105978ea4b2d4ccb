package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/kernels/model"
	"siafu/ranks/forecast"
)

// inBatches returns a run in mini-batches.
func inBatches(t *testing.T, ranks, batches int) Config {
	c := quick(t)
	c.Ranks, c.Servers, c.Threads, c.Epochs = ranks, 0, 1, 8
	c.Batch = fmt.Sprintf("history:%d", batches)
	return c
}

// One mini-batch of all vertices is exact training, to the bit.
func TestOneBatchIsExact(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"gcn", "sage", "gin"} {
		for _, directed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s directed=%t", kind, directed), func(t *testing.T) {
				for name, data := range map[string]string{"plain": generated(t, directed), "weighted": weightedGraph(t, directed)} {
					c := inBatches(t, 1, 1)
					c.Model, c.Layers, c.EvalEvery, c.Threads, c.LR = kind, 3, 3, 2, 0.003
					batch := train(t, c, data)
					c.Batch, c.Order, c.CacheInput, c.InputDropout = "full", "gather-first", "on", 0
					exact := train(t, c, data)
					if !bytes.Equal(batch.model, exact.model) {
						t.Errorf("%s: the models differ", name)
					}
					sameLosses(t, kind+" "+name, batch.losses(), exact.losses(), 1e-12)
				}
			})
		}
	}
}

// Mini-batches with a history equal a second implementation of GNNAutoScale in float64: 1e-4
// allows the float32 errors of 60 steps.
func TestHistoryIsGNNAutoScale(t *testing.T) {
	t.Parallel()
	const n, epochs, batches, lr = 60, 15, 4, 0.3
	for _, c := range []struct {
		ranks    int
		mode     string
		weighted bool
	}{{1, "pipe", false}, {1, "nopipe", true}, {3, "pipe", true}, {3, "nopipe", false}} {
		t.Run(fmt.Sprintf("ranks=%d %s weighted=%t", c.ranks, c.mode, c.weighted), func(t *testing.T) {
			content := randomContent(n, 3)
			weigh(&content, c.weighted)
			s := model.Spec{Kind: "gcn", Dims: []int{content.Features.Dim, 6, 3}}
			flat := make([]float32, s.NumWeights())
			s.Initialize(flat, "xavier", 4)
			data, owner := write(t, content), inTurns(n, c.ranks)
			partitionBy(t, data, "", c.ranks, owner...)
			run := inBatches(t, c.ranks, batches)
			run.Hidden, run.Epochs, run.LR, run.Mode, run.Dropout, run.EvalEvery, run.VertexOrder, run.Intervals = 6, epochs,
				lr, c.mode, 0, 0, "natural", 2
			run.Optimizer, run.Momentum, run.WeightDecay, run.Init = "sgd", 0, 0, weightsFile(t, s, flat)
			got := train(t, run, data)
			g := newScaled(content, s, owner, flat, c.ranks, batches)
			g.along(t, data)
			var want []float64
			for epoch := range epochs {
				want = append(want, g.epoch(run.Seed, epoch+1, lr))
			}
			sameLosses(t, c.mode, got.losses()[:epochs], want, 1e-4)
			run.Batch, run.Epochs = "full", epochs*batches
			exact := train(t, run, data).losses()
			if d := math.Abs(exact[len(exact)-2] - want[epochs-1]); d < 1e-3 {
				t.Errorf("updates from all vertices lead to the same loss but for %.2g: the test shows nothing", d)
			}
		})
	}
}

// Options that change only messages and tasks leave the same bytes.
func TestBatchesWhateverElse(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, kind := range []string{"gcn", "sage", "predicted", "variates", "neighbours", "clusters", "walks", "approximated"} {
		drawn := kind == "neighbours" || kind == "clusters" || kind == "walks" || kind == "approximated"
		run := func(set func(*Config)) trained {
			c := inBatches(t, 3, 5)
			c.Model, c.Layers = kind, 3
			switch kind {
			case "predicted":
				c.Model, c.Predict = "sage", "transfer"
			case "variates":
				c.Model, c.Batch = "gcn", "variates:5,2"
			case "neighbours":
				c.Model, c.Batch = "sage", "neighbor:5,4,3,20"
			case "clusters":
				c.Model, c.Batch = "gat", "cluster:9,2"
			case "approximated":
				c.Model, c.Batch = "sage", "approximate:0.3"
			case "walks":
				c.Model, c.Batch = "gcn", "saint:40,2"
			}
			set(&c)
			return train(t, c, data)
		}
		want := run(func(*Config) {})
		if first, last := want.Epochs[0].Loss, want.Summary.FinalLoss; !(last < first) {
			t.Errorf("%s: the loss goes from %v to %v", kind, first, last)
		}
		for name, set := range hosttest.Share(t, 2, map[string]func(*Config){
			"again": func(*Config) {}, "nopipe": func(c *Config) { c.Mode = "nopipe" }, "two workers": func(c *Config) { c.Threads = 2 },
			"a server": func(c *Config) { c.Ranks, c.Servers = 4, 1 },
			"parts":    func(c *Config) { c.Ranks, c.Parts = 2, 3 }, "recompute": func(c *Config) { c.Recompute = true },
			"seldom evaluated": func(c *Config) { c.EvalEvery = 0 },
		}) {
			if drawn && name == "recompute" || (kind == "walks" || kind == "approximated") && name != "two workers" && name != "parts" {
				continue // refused, or as for clusters
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				got := run(set)
				if name == "seldom evaluated" { // another epoch is best
					sameLosses(t, name, got.losses(), want.losses(), 1e-12)
				} else if !bytes.Equal(got.model, want.model) {
					t.Error("another model")
				}
			})
		}
		for _, format := range []string{"bf16", "int8"} {
			if kind == "variates" || drawn {
				continue // it reads rows in place, or there is no history
			}
			got := run(func(c *Config) { c.HistoryFormat = format })
			// Coarser rows: near, not the same.
			if d := math.Abs(got.Summary.FinalLoss - want.Summary.FinalLoss); d > 0.1*want.Summary.FinalLoss ||
				bytes.Equal(got.model, want.model) {
				t.Errorf("%s %s: final loss %v, want about %v", kind, format, got.Summary.FinalLoss, want.Summary.FinalLoss)
			}
			if got.Summary.GhostBytesSent >= want.Summary.GhostBytesSent || got.Summary.GhostBytesRaw != want.Summary.GhostBytesRaw {
				t.Errorf("%s %s: %d bytes are sent for %d, as float32 %d for %d", kind, format, got.Summary.GhostBytesSent,
					got.Summary.GhostBytesRaw, want.Summary.GhostBytesSent, want.Summary.GhostBytesRaw)
			}
		}
	}
}

// One step of all training vertices with all neighbours sampled is exact training, except for
// the order of sums: 1e-5 allows the float32 errors of 20 steps.
func TestAllSampledIsExact(t *testing.T) {
	t.Parallel()
	for _, layers := range []int{2, 3} {
		for _, directed := range []bool{false, true} {
			c := inBatches(t, 1, 1)
			c.Batch, c.Layers, c.EvalEvery, c.Epochs, c.Optimizer, c.LR, c.Threads = "variates:1,1000", layers, 0, 20, "sgd", 0.1, 2
			data := generated(t, directed)
			if layers == 2 {
				data, c.LR = weightedGraph(t, directed), 0.03
			}
			batch := train(t, c, data)
			c.Batch, c.Order, c.CacheInput, c.InputDropout = "full", "gather-first", "on", 0
			sameLosses(t, fmt.Sprint(layers, " layers, directed: ", directed), batch.losses(), train(t, c, data).losses(), 1e-5)
		}
	}
}

// The history of a ghost that no training vertex of its owner reaches is computed as well: with constant
// weights, the loss of steps on many ranks with few training vertices becomes that of one rank, in as many
// epochs as layers gather. Without dropout and with all neighbours on a rank sampled, only the order of
// sums remains.
func TestVariatesReachAllGhosts(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "few")
	if _, err := generate.Write(data,
		generate.Options{Vertices: 400, Edges: 1500, Features: 12, Classes: 4, Seed: 5, Train: 0.05, Val: 0.2}, false); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"gcn", "gcnii", "appnp"} {
		run := func(ranks int, batch string) []float64 {
			c := inBatches(t, ranks, 0)
			c.Model, c.Batch, c.Partitioner, c.Layers, c.Hops, c.Epochs, c.EvalEvery = kind, batch, "hash", 3, 3, 8, 0
			c.Initializer, c.Optimizer, c.LR, c.Dropout, c.InputDropout = "xavier", "sgd", 1e-9, 0, 0
			return train(t, c, data).losses()
		}
		want := run(1, "full")[7:8]
		for _, ranks := range []int{1, 3, 8} {
			sameLosses(t, fmt.Sprint(kind, " on ", ranks, " ranks"), run(ranks, "variates:2,1000")[7:8], want, 1e-5)
		}
	}
}

// VR-GCN with all neighbours of a rank sampled equals a second implementation in float64, in
// mini-batches and on several ranks: 1e-4 allows the float32 errors of 60 steps.
func TestVariatesAreVRGCN(t *testing.T) {
	t.Parallel()
	const n, epochs, batches, lr = 60, 15, 4, 0.3
	for i, ranks := range []int{1, 2, 1, 2} {
		content := randomContent(n, 3)
		weigh(&content, i >= 2)
		s := model.Spec{Kind: "gcn", Dims: []int{content.Features.Dim, 6, 3}}
		flat := make([]float32, s.NumWeights())
		s.Initialize(flat, "xavier", 4)
		data, owner := write(t, content), inTurns(n, ranks)
		partitionBy(t, data, "", ranks, owner...)
		c := inBatches(t, ranks, batches)
		c.Hidden, c.Epochs, c.LR, c.Dropout, c.EvalEvery, c.VertexOrder, c.Intervals = 6, epochs, lr, 0, 0, "natural", 2
		c.Optimizer, c.Momentum, c.WeightDecay, c.Init, c.Batch = "sgd", 0, 0, weightsFile(t, s, flat), "variates:4,60"
		got := train(t, c, data)
		g := newScaled(content, s, owner, flat, ranks, batches)
		g.along(t, data)
		var want []float64
		refreshed := forOthers(owner, content.Split, g.a, 1)[1]
		for epoch := 1; epoch <= epochs; epoch++ {
			loss, all := 0.0, 0
			for k := range batches {
				var targets, more []int
				for q := range ranks {
					var mine []int
					for v := range owner {
						if owner[v] == q && content.Split[v] == graph.SplitTrain {
							mine = append(mine, v)
						}
					}
					targets = append(targets, deal(c, epoch, q, k, batches, mine)...)
					more = append(more, deal(c, epoch, q, k, batches, refreshed[q])...)
				}
				loss, all = loss+g.varied(owner, targets, more, lr), all+len(targets)
			}
			want = append(want, loss/float64(all))
		}
		sameLosses(t, fmt.Sprint(ranks, " ranks, weighted: ", i >= 2), got.losses()[:epochs], want, 1e-4)
	}
}

// More batches than vertices leave some empty, which train nothing.
func TestEmptyBatches(t *testing.T) {
	t.Parallel()
	c := inBatches(t, 2, 40)
	c.Epochs, c.Dropout = 4, 0
	content := randomContent(30, 3)
	for v := range 15 { // in the order of the dataset rank 0 then has no training vertex
		if content.Split[v] == graph.SplitTrain {
			content.Split[v] = graph.SplitVal
		}
	}
	c.Partitioner, c.VertexOrder = "contiguous", "natural"
	for _, c.Batch = range []string{"history:40", "variates:40,1", "history:1", "variates:1,3", "neighbor:2,2,1", "neighbor:2,2,1000",
		"cluster:40", "cluster:40,30"} {
		r := train(t, c, write(t, content))
		if len(r.Epochs) != 4 || math.IsNaN(r.Summary.FinalLoss) {
			t.Errorf("%s: %d epochs, final loss %v", c.Batch, len(r.Epochs), r.Summary.FinalLoss)
		}
	}
}

// Rows outside of a batch are predicted from the second epoch on, except in the last step of an
// epoch: all are then of this epoch. No row is sent for it.
func TestBatchesPredict(t *testing.T) {
	t.Parallel()
	data := evolving(t)
	c := inBatches(t, 2, 4)
	c.Layers, c.Hidden, c.Dropout, c.Predict = 3, 16, 0, "transfer"
	got := train(t, c, data).Summary
	const want = 2 * 2 * 3 * 7 // ranks, layers, steps, epochs
	if n := got.Predictions + got.PredictFallbacks; n != want || got.Predictions < want/2 {
		t.Errorf("%d predictions and %d fallbacks, of %d", got.Predictions, got.PredictFallbacks, want)
	}
	c.Predict = "off"
	if without := train(t, c, data).Summary; without.FinalLoss == got.FinalLoss || without.GhostBytesSent != got.GhostBytesSent {
		t.Errorf("loss %v with predictions, %v without; %d and %d bytes", got.FinalLoss, without.FinalLoss,
			got.GhostBytesSent, without.GhostBytesSent)
	}
}

// Incompatible options are refused with both flags' names.
func TestBatchRefusals(t *testing.T) {
	t.Parallel()
	for _, set := range []func(*Config){
		func(c *Config) { c.Batch = "history:0" }, func(c *Config) { c.Batch = "history" }, func(c *Config) { c.Batch = "half" },
		func(c *Config) { c.Batch = "variates:3" }, func(c *Config) { c.Batch = "variates:3,0" },
		func(c *Config) { c.Batch, c.Model = "variates:3,2", "sage" },
		func(c *Config) { c.Batch, c.HistoryFormat = "variates:3,2", "bf16" }, func(c *Config) { c.Batch, c.Layers = "variates:3,2", 1 },
		func(c *Config) { c.Batch = "history:3,2" },
		func(c *Config) { c.Batch, c.Predict = "variates:3,2", "gru-gcn" },
		func(c *Config) { c.Batch, c.Predict = "cluster:3", "transfer" },
		func(c *Config) { c.Batch, c.MeasureStaleness = "cluster:3", 2 },
		func(c *Config) { c.Batch, c.MeasureStaleness = "neighbor:5,5", 2 },
		func(c *Config) { c.Batch = "neighbor:5" }, func(c *Config) { c.Batch = "neighbor:5,0" },
		func(c *Config) { c.Batch = "neighbor:5,5,5,5" },
		func(c *Config) { c.Batch, c.Layers = "neighbor:5,5", 4 }, func(c *Config) { c.Batch = "neighbor:5,99999999999" },
		func(c *Config) { c.Batch = "cluster:" },
		func(c *Config) { c.Batch = "cluster:3,4" }, func(c *Config) { c.Batch = "cluster:70000,70000" },
		func(c *Config) { c.Batch = "cluster:0" },
		func(c *Config) { c.Batch, c.Mode = "cluster:3", "async" },
		func(c *Config) { c.Batch, c.Refresh = "neighbor:5,5", "previous:none" },
		func(c *Config) { c.Batch, c.LocalEpochs = "cluster:3", 2 }, func(c *Config) { c.Batch, c.Model = "neighbor:5,5", "mlp" },
		func(c *Config) { c.Batch, c.HistoryFormat = "cluster:3", "bf16" }, func(c *Config) { c.Batch, c.Recompute = "cluster:3", true },
		func(c *Config) { c.Batch, c.Tensor = "cluster:3", "cuda" }, func(c *Config) { c.Batch, c.Codec = "neighbor:5,5", "auto" },
		func(c *Config) { c.Batch = "history:70000" }, func(c *Config) { c.Epochs = math.MaxInt32 / 2 },
		func(c *Config) { c.Mode = "async" }, func(c *Config) { c.Refresh = "previous:none" }, func(c *Config) { c.Model = "gat" },
		func(c *Config) { c.InputDropout = 0.5 }, func(c *Config) { c.CacheInput = "off" }, func(c *Config) { c.Order = "apply-first" },
		func(c *Config) { c.Codec = "auto" }, func(c *Config) { c.HistoryFormat = "int4" }, func(c *Config) { c.Tensor = "cuda" },
	} {
		c := inBatches(t, 1, 3)
		set(&c)
		err := Train(context.Background(), c, "nowhere", IO{Out: io.Discard, Err: io.Discard})
		if text := fmt.Sprint(err); fault.KindOf(err) != fault.Usage ||
			!strings.Contains(text, "--batch=") && !strings.Contains(text, "--batch format=") && !strings.Contains(text, "--tensor") {
			t.Errorf("%v", err)
		}
	}
}

// A resumed run in mini-batches has the bits of one that never stopped, since its history is
// in the checkpoint. It also resumes on other ranks.
func TestBatchesGoOn(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	for _, format := range []string{"float32", "int8", "predicted", "momentum:0.3", "variates:4,3", "variates:4,3 predicted",
		"neighbor:4,3,5,20", "cluster:8,2"} {
		c := inBatches(t, 3, 4)
		c.Layers, c.HistoryFormat, c.CheckpointEvery, c.EvalEvery = 3, format, "4e", 3
		if format == "predicted" {
			c.HistoryFormat, c.Predict = "bf16", "transfer"
		}
		switch batch, kind, _ := strings.Cut(format, " "); {
		case strings.HasPrefix(batch, "momentum"):
			c.HistoryFormat, c.Predict = "float32", batch
		case strings.Contains(batch, ":"):
			c.Batch, c.HistoryFormat = batch, "float32"
			if kind != "" {
				c.Predict = "transfer"
			}
		}
		want := train(t, c, data)
		c.Out, c.Epochs = filepath.Join(t.TempDir(), "halves"), 4
		train(t, c, data)
		c.Epochs, c.Resume = 8, "auto"
		if got := train(t, c, data); !bytes.Equal(got.model, want.model) {
			t.Errorf("%s: another model", format)
		}
		other := c
		other.Ranks, other.Servers, other.Resume, other.Out = 2, 1, filepath.Join(c.Out, "checkpoints", "epoch-000004"),
			filepath.Join(t.TempDir(), "others")
		if got := train(t, other, data); len(got.Epochs) != 8 {
			t.Errorf("%s: on other ranks it trains %d epochs", format, len(got.Epochs))
		}
		other.Batch, other.Out = "history:5", filepath.Join(t.TempDir(), "fifths")
		err := Train(context.Background(), other, data, IO{Out: io.Discard, Err: io.Discard})
		if fault.KindOf(err) != fault.Config || !strings.Contains(fmt.Sprint(err), "batch") {
			t.Errorf("%s: other batches: %v", format, err)
		}
	}
}

// Arrays of mini-batches are estimated from counts of edges, as if edges were uniformly
// random: from a twentieth less to a quarter more than the actual size.
func TestBatchesAreEstimated(t *testing.T) {
	t.Parallel()
	plain, content := generated(t, false), randomContent(400, 4)
	weigh(&content, true)
	weighted := write(t, content)
	for i, batches := range []string{
		"history:1", "history:5", "history:20", "variates:3,2", "variates:1,40", "neighbor:2,2,2,10",
		"neighbor:5,5,5", "cluster:1", "cluster:10,3",
		"history:1", "history:5", "variates:3,2", "neighbor:5,5,5", "cluster:1", "history:5 transfer",
		"history:5 momentum:0.5", "variates:3,2 transfer", "history:5 momentum:0.5",
		"history:5 measured", "variates:3,2 measured",
	} {
		data := plain
		if i > 8 {
			data = weighted
		}
		c := inBatches(t, 3, 1)
		c.Layers, c.Hidden, c.Epochs, c.PreAggregate = 3, 40, 2, "off"
		if c.Batch, c.Predict, _ = strings.Cut(batches, " "); c.Predict == "measured" {
			c.Predict, c.MeasureStaleness = "off", 1
		}
		run := train(t, c, data).Summary
		f, parts := foreseen(t, c, data, 3, 0)
		for rank, got := range run.PerRank {
			want := f.GraphRank(rank, parts[rank]).Of(forecast.Array)
			if ratio := float64(want) / float64(got.ArrayBytes); ratio < 0.95 || ratio > 1.25 {
				t.Errorf("%s: rank %d made arrays of %d bytes, estimated were %d", batches, rank, got.ArrayBytes, want)
			}
		}
	}
}
