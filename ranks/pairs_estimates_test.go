package ranks

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"siafu/graph/generate"
	"siafu/graph/pairs"
	"siafu/internal/testkit/hosttest"
)

// heldOut returns a generated graph of 4200 vertices with held-out edges.
func heldOut(t *testing.T, directed bool) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "links")
	from := planted(t, generate.Options{Vertices: 4200, Edges: 25000, Directed: directed})
	if _, err := pairs.HoldOut(from, dst, pairs.HoldOutOptions{Split: "85/5/10", Seed: 3}, false); err != nil {
		t.Fatal(err)
	}
	return dst
}

// The bytes that ranks send for the ends of pairs are estimated by mean and deviation, with
// samples in one chunk and in several, on ranks and on parts. An epoch is within five
// deviations, except one in a million. The mean over n epochs deviates less by √n. The
// observed variance is, like a chi-square with 19 degrees of freedom, between a quarter and
// 2.7 times the true one, except one run in ten thousand.
func TestPairTrafficEstimate(t *testing.T) {
	t.Parallel()
	const epochs = 20
	data := map[bool]string{false: heldOut(t, false), true: heldOut(t, true)}
	for name, tc := range hosttest.Share(t, 4, map[string]struct {
		directed bool
		parts    int
		set      func(*Config)
	}{
		"two ranks":            {false, 2, func(*Config) {}},
		"four ranks, a codec":  {false, 4, func(c *Config) { c.Codec = "int8" }},
		"directed":             {true, 3, func(*Config) {}},
		"contiguous, directed": {true, 4, func(c *Config) { c.Partitioner = "contiguous" }},
		"parts":                {false, 5, func(c *Config) { c.Ranks, c.Parts = 2, 5 }},
		"servers":              {false, 2, func(c *Config) { c.Ranks, c.Servers = 3, 1 }},
		"a perceptron, chunks": {false, 2, func(c *Config) {
			c.LinkScore, c.LinkLayers, c.LinkHidden, c.Embedding = "mlp", 1, 1, 1024 /* 8192 pairs at a time */
		}},
		"one rank, and nothing": {false, 1, func(*Config) {}},
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := quick(t)
			c.Ranks, c.Servers, c.Epochs, c.Hidden, c.Embedding, c.Partitioner, c.EvalEvery = tc.parts, 0, epochs, 4, 3, "hash", 0
			tc.set(&c)
			folder := filepath.Join(t.TempDir(), "links") // with parts of its own
			if err := os.CopyFS(folder, os.DirFS(data[tc.directed])); err != nil {
				t.Fatal(err)
			}
			run := train(t, c, folder)
			f, parts := foreseen(t, c, folder, tc.parts, c.Servers)
			want := f.PairTraffic(parts)
			mean, square := 0.0, 0.0
			for _, e := range run.Epochs {
				d := float64(e.PairBytes - want.Sent)
				if math.Abs(d) > 5*float64(want.Deviation) {
					t.Errorf("epoch %d sends %d bytes for pairs, estimated were %d ± %d", e.Epoch, e.PairBytes, want.Sent, want.Deviation)
				}
				mean, square = mean+d/epochs, square+d*d/epochs
			}
			if tc.parts == 1 {
				if want.Sent != 0 || run.Epochs[0].PairBytes != 0 {
					t.Errorf("%d bytes are estimated, %d sent", want.Sent, run.Epochs[0].PairBytes)
				}
				return
			}
			if want.Sent == 0 || math.Abs(mean) > 5*float64(want.Deviation)/math.Sqrt(epochs) {
				t.Errorf("%g bytes more than estimated in the mean of %d epochs: %d ± %d", mean, epochs, want.Sent, want.Deviation)
			}
			if ratio := (square - mean*mean) * epochs / (epochs - 1) / math.Pow(float64(want.Deviation), 2); ratio < 0.25 || ratio > 2.7 {
				t.Errorf("the variance of epochs is %g times the one estimated", ratio)
			}
		})
	}
}

// Evaluations during training also fetch rows, which are not counted.
func TestPairTrafficIsThatOfTraining(t *testing.T) {
	t.Parallel()
	data := linked(t, true)
	c := quick(t)
	c.Ranks, c.Servers, c.Epochs, c.Dropout, c.EvalEvery = 2, 0, 3, 0.3, 0
	without := train(t, c, data)
	c.EvalEvery, c.Out = 1, filepath.Join(t.TempDir(), "evaluated")
	for i, e := range train(t, c, data).Epochs {
		if e.EvalSeconds == 0 || e.PairBytes == 0 || e.PairBytes != without.Epochs[i].PairBytes {
			t.Errorf("epoch %d sends %d bytes for pairs and evaluates for %g s, without evaluations it sends %d", e.Epoch, e.PairBytes,
				e.EvalSeconds, without.Epochs[i].PairBytes)
		}
	}
}
