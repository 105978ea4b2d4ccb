package ranks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/kernels/model"
)

// measuredBatches returns a run in mini-batches whose used rows are measured in every second epoch.
func measuredBatches(t *testing.T, ranks int, batch string) Config {
	c := inBatches(t, ranks, 1)
	c.Batch, c.Layers, c.Hidden, c.Dropout, c.EvalEvery, c.MeasureStaleness = batch, 3, 16, 0, 0, 2
	return c
}

// Measurements change no bit of a run in mini-batches, whose evaluations count epochs and not steps.
func TestMeasuringBatchesChangesNothing(t *testing.T) {
	t.Parallel()
	data := evolving(t)
	for _, flags := range []string{"history:3", "history:3 transfer", "history:3 momentum:0.5", "variates:3,2", "variates:3,2 transfer"} {
		batch, kind, _ := strings.Cut(flags, " ")
		c := measuredBatches(t, 2, batch)
		c.Predict, c.Dropout, c.EvalEvery = kind, 0.5, 1
		with := train(t, c, data)
		c.MeasureStaleness = 0
		without := train(t, c, data)
		if !bytes.Equal(with.model, without.model) {
			t.Errorf("%s: the models differ", flags)
		}
		for i, e := range with.Epochs {
			if e.Loss != without.Epochs[i].Loss || e.GhostBytesSent != without.Epochs[i].GhostBytesSent ||
				(e.Staleness != nil) != (i%2 == 0) {
				t.Errorf("%s: epoch %d: loss %v, %d bytes and %v; without measurements %v and %d bytes", flags, e.Epoch, e.Loss,
					e.GhostBytesSent, e.Staleness, without.Epochs[i].Loss, without.Epochs[i].GhostBytesSent)
			}
		}
	}
}

// With constant weights, rows of the history are exact from the epoch in which all their sources were
// exact on: one epoch for each layer. Before, all of H is missing in the first step. One batch of all
// vertices has an exact gradient.
func TestNothingIsStaleInBatchesWithConstantWeights(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	for _, tc := range []struct {
		batch, model string
		ranks        int
	}{{"history:3", "gcn", 1}, {"history:3", "gcn", 3}, {"history:1", "gcn", 1}, {"history:3", "sage", 3}, {"history:3", "gin", 3},
		{"history:3", "gcnii", 3}, {"variates:1,50", "gcn", 1}, {"variates:1,50", "gcnii", 1}} {
		c := measuredBatches(t, tc.ranks, tc.batch)
		c.Model = tc.model
		c.Optimizer, c.Momentum, c.LR, c.MeasureStaleness = "sgd", 0, 1e-30, 1
		epochs := train(t, c, data).Epochs
		for i, e := range epochs {
			if norm := e.Staleness.GradientNorm; norm <= 0 || norm != epochs[0].Staleness.GradientNorm {
				t.Errorf("%v: epoch %d: the norm of the exact gradient is %v", tc, i+1, norm)
			}
			if g := e.Staleness.GradientError; tc.batch == "history:1" && g > 1e-6 {
				t.Errorf("%v: epoch %d: the gradient is off by %v", tc, i+1, g)
			}
			if n := len(e.Staleness.Layers); n < 2 {
				t.Fatalf("%v: layers %+v", tc, e.Staleness.Layers)
			}
			for _, l := range e.Staleness.Layers {
				// Rounding of sums in another order than in the exact pass.
				if i > 2 && l.Relative > 1e-6 || i == 0 && l.Ghosts > 0 && l.Relative < 0.1 {
					t.Errorf("%v: epoch %d: layer %d is off by %v", tc, i+1, l.Layer, l.Relative)
				}
				if (l.Ghosts == 0) != (tc.batch == "history:1") || i > 0 && l.Ghosts > 0 && (l.MeanAge > 1 || l.MaxAge > 1) {
					t.Errorf("%v: epoch %d: layer %d: %d rows, mean age %v, at most %d", tc, i+1, l.Layer, l.Ghosts, l.MeanAge, l.MaxAge)
				}
			}
		}
	}
}

// Predictions leave less error than the history has, in history and in variates. The momentum of GraphFM
// mixes rows of incomplete neighbourhoods in.
func TestPredictedHistoriesHaveASmallerStaleness(t *testing.T) {
	t.Parallel()
	data := evolving(t)
	for _, tc := range []struct {
		batch, kind string
		most        float64 // of the error of the history
	}{{"history:4", "transfer", 0.9}, {"variates:4,2", "transfer", 0.9}, {"history:4", "momentum:0.1", 1.5}} {
		for ranks := 1; ranks <= 2; ranks++ {
			c := measuredBatches(t, ranks, tc.batch)
			c.Epochs, c.Predict = 20, tc.kind
			got := train(t, c, data)
			predicted, stale := got.staleness(t, 3)
			for l := range stale {
				t.Logf("%s, %s, %d ranks: layer %d: the history is off by %.4f, used rows by %.4f", tc.batch, tc.kind,
					ranks, l, stale[l], predicted[l])
				if !(stale[l] > 0) || !(predicted[l] < tc.most*stale[l]) || predicted[l] == stale[l] {
					t.Errorf("%s, %s, %d ranks: layer %d: more than %g of the error remains", tc.batch, tc.kind, ranks, l, tc.most)
				}
			}
			if len(stale) != 2 || tc.kind == "transfer" && got.Summary.Predictions == 0 {
				t.Errorf("%d layers, %d predictions", len(stale), got.Summary.Predictions)
			}
		}
	}
}

// Rows of the current epoch are not predicted: the first epoch has the bits of a run without.
func TestVariatesPredictOnlyEarlierRows(t *testing.T) {
	t.Parallel()
	data := evolving(t)
	c := measuredBatches(t, 2, "variates:4,2")
	c.MeasureStaleness = 0
	for epochs := 1; epochs <= 2; epochs++ {
		c.Epochs, c.Predict = epochs, "off"
		without := train(t, c, data)
		c.Predict = "transfer"
		if got := train(t, c, data); bytes.Equal(got.model, without.model) != (epochs == 1) || got.Summary.Predictions > 0 != (epochs > 1) {
			t.Errorf("%d epochs: %d predictions, loss %v, without %v", epochs, got.Summary.Predictions,
				got.Summary.FinalLoss, without.Summary.FinalLoss)
		}
	}
}

// With one batch of all vertices there are none outside, and the average has the bits of full training.
func TestMomentumOfOneBatchIsExact(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := inBatches(t, 1, 1)
	c.Layers, c.Predict = 3, "momentum:0.5"
	average := train(t, c, data)
	c.Predict, c.Batch, c.Order, c.CacheInput, c.InputDropout = "off", "full", "gather-first", "on", 0
	if exact := train(t, c, data); !bytes.Equal(average.model, exact.model) {
		t.Errorf("loss %v, exact %v", average.Summary.FinalLoss, exact.Summary.FinalLoss)
	}
}

// Averaged histories equal a second implementation of GraphFM-OB in float64: 1e-4 allows the float32
// errors of 60 steps. Without momentum, losses differ by more.
func TestMomentumIsGraphFM(t *testing.T) {
	t.Parallel()
	const n, epochs, batches, lr = 60, 15, 4, 0.3
	for _, c := range []struct {
		ranks    int
		weighted bool
	}{{1, false}, {1, true}, {3, true}} {
		content := randomContent(n, 3)
		weigh(&content, c.weighted)
		s := model.Spec{Kind: "gcn", Dims: []int{content.Features.Dim, 6, 3}}
		flat := make([]float32, s.NumWeights())
		s.Initialize(flat, "xavier", 4)
		data, owner := write(t, content), inTurns(n, c.ranks)
		partitionBy(t, data, "", c.ranks, owner...)
		run := inBatches(t, c.ranks, batches)
		run.Hidden, run.Epochs, run.LR, run.Dropout, run.EvalEvery, run.VertexOrder, run.Predict = 6, epochs, lr,
			0, 0, "natural", "momentum:0.25"
		run.Optimizer, run.Momentum, run.WeightDecay, run.Init = "sgd", 0, 0, weightsFile(t, s, flat)
		got := train(t, run, data)
		g := newScaled(content, s, owner, flat, c.ranks, batches)
		g.share = 0.25
		g.along(t, data)
		var want []float64
		for epoch := range epochs {
			want = append(want, g.epoch(run.Seed, epoch+1, lr))
		}
		sameLosses(t, fmt.Sprint(c), got.losses()[:epochs], want, 1e-4)
		run.Predict = "off"
		if d := math.Abs(train(t, run, data).losses()[epochs-1] - want[epochs-1]); d < 1e-3 {
			t.Errorf("%v: momentum changes the loss by only %.2g: the test shows nothing", c, d)
		}
	}
}

// GraphFM's momentum is refused where it does not apply, with the flag and a remedy.
func TestMomentumIsRefused(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Config){
		"--batch=full":         func(c *Config) { c.Batch = "full" },
		"--batch=variates:3,2": func(c *Config) { c.Batch = "variates:3,2" },
		"--batch=cluster:3":    func(c *Config) { c.Batch = "cluster:3" },
		"--refresh=every:3":    func(c *Config) { c.Refresh = "every:3" },
		"--model=sage":         func(c *Config) { c.Model = "sage" },
		"--residual=add":       func(c *Config) { c.Residual, c.Layers = "add", 3 },
		"--predict rows=100":   func(c *Config) { c.PredictRows = 100 },
		"momentum:0 ":          func(c *Config) { c.Predict = "momentum:0" },
		"momentum:1.1":         func(c *Config) { c.Predict = "momentum:1.1" },
		"momentum:NaN":         func(c *Config) { c.Predict = "momentum:NaN" },
		"--predict=momentum":   func(c *Config) { c.Predict = "momentum" },
	} {
		c := inBatches(t, 1, 3)
		c.Predict = "momentum:0.5"
		set(&c)
		err := Train(context.Background(), c, "nowhere", IO{Out: io.Discard, Err: io.Discard})
		if text := fmt.Sprint(err) + " "; fault.KindOf(err) != fault.Usage || !strings.Contains(text, strings.TrimSpace(name)) ||
			strings.Contains(text, "nowhere") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
