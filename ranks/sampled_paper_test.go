package ranks

import (
	"math"
	"testing"
)

// "our experiments (§7.5) and prior work [34] highlight two limitations with graph
// sampling: (1) sampling must be done repeatedly per epoch, incurring time overheads and
// (2) sampling typically reduces accuracy of the trained GNNs." (Dorylus, OSDI'21, §1)
//
// So every epoch fetches its own sample from other ranks. The whole graph sends the same bytes
// in every epoch, and fewer if ÂX is cached.
func TestSamplingIsDoneInEveryEpoch(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	c := quick(t)
	c.Ranks, c.Servers, c.Threads, c.Epochs, c.EvalEvery, c.InputDropout, c.Partitioner = 3, 0, 1, 5, 0, 0, "hash"
	whole := train(t, c, data)
	c.Batch = "neighbor:5,3,40"
	seen := map[int64]bool{}
	for i, e := range train(t, c, data).Epochs {
		seen[e.GhostBytesRaw] = true
		if all := whole.Epochs[i].GhostBytesRaw; all != whole.Epochs[0].GhostBytesRaw || e.GhostBytesRaw <= all {
			t.Errorf("epoch %d fetches %d bytes, of the whole graph %d", e.Epoch, e.GhostBytesRaw, all)
		}
	}
	if len(seen) < 2 {
		t.Errorf("all epochs fetch the same: %v", seen)
	}
}

// (2) follows even in one layer with unbiased logits: the loss is convex in them, so its mean
// is larger than the loss of the mean (Jensen), more so for fewer sampled neighbours. Training
// follows that gradient. With a zero learning rate, epochs are samples of one loss: the mean
// of 60 has a deviation of about a thousandth, below the required difference between two
// numbers of neighbours.
func TestSampledLossesAreTooLarge(t *testing.T) {
	t.Parallel()
	data := generated(t, false)
	c := quick(t)
	c.Ranks, c.Servers, c.Threads, c.Epochs, c.EvalEvery, c.InputDropout, c.Dropout = 1, 0, 1, 60, 0, 0, 0
	c.Layers, c.Optimizer, c.LR, c.Momentum, c.WeightDecay, c.Initializer = 1, "sgd", 1e-30, 0, 0, "xavier"
	mean := func(batch string) (m, deviation float64) {
		c.Batch = batch
		losses := train(t, c, data).losses()[:c.Epochs]
		for _, l := range losses {
			m += l / float64(len(losses))
		}
		for _, l := range losses {
			deviation += (l - m) * (l - m)
		}
		return m, math.Sqrt(deviation) / float64(len(losses))
	}
	exact, _ := mean("full")
	before, last := exact, ""
	for _, batch := range []string{"neighbor:1000,10000", "neighbor:6,10000", "neighbor:3,10000", "neighbor:1,10000"} {
		m, d := mean(batch)
		t.Logf("%s: %.5f ± %.5f, all: %.5f", batch, m, d, exact)
		if batch == "neighbor:1000,10000" {
			if math.Abs(m-exact) > 1e-6 {
				t.Errorf("all neighbours: %v, want %v", m, exact)
			}
		} else if m-before < 4*d {
			t.Errorf("%s: %v ± %v, not more than %v of %s", batch, m, d, before, last)
		}
		before, last = m, batch
	}
}
