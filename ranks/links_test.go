package ranks

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"siafu/graph"
	"siafu/graph/holdout"
)

// linked is a dataset with held edges, of a generated graph.
func linked(t testing.TB, directed bool) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "links")
	if _, err := holdout.Write(generated(t, directed), dst, holdout.Options{Split: "80/10/10", Ranked: 20, Seed: 3}, false); err != nil {
		t.Fatal(err)
	}
	return dst
}

// The gradient of pairs is the central difference of the loss that a run tells, along
// random directions, on one rank and on three.
func TestGradientOfLinks(t *testing.T) {
	for _, directed := range []bool{false, true} {
		data := linked(t, directed)
		meta, err := graph.ReadMeta(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"mlp", "gcn"} {
			c := quick(t)
			c.Model, c.Dropout, c.WeightDecay, c.Epochs, c.Embedding, c.Servers = kind, 0, 0, 1, 5, 0
			c.Optimizer, c.Momentum, c.LR, c.Hidden = "sgd", 0, 1, 6
			s := c.Network(meta.FeatureDim, c.Outputs(meta))
			rng := rand.New(rand.NewPCG(1, 2))
			from := make([]float32, s.NumWeights())
			for i := range from {
				from[i] = float32(rng.NormFloat64()) / 2
			}
			along := func(h float64, by []float64) []float32 {
				to := make([]float32, len(from))
				for i := range to {
					to[i] = from[i] + float32(h*by[i])
				}
				return to
			}
			loss := func(ranks int, w []float32) (float64, []float32) {
				c.Ranks, c.Init = ranks, weightsFile(t, s, w)
				r := train(t, c, data)
				return r.Epochs[0].Loss, r.weights(t, s)
			}
			for _, ranks := range []int{1, 3} {
				_, after := loss(ranks, from)
				for range 3 {
					by, got := make([]float64, len(from)), 0.0
					for i := range by {
						by[i] = rng.NormFloat64()
						got += float64(from[i]-after[i]) * by[i]
					}
					const h = 1e-4
					up, _ := loss(1, along(h, by))
					down, _ := loss(1, along(-h, by))
					want := (up - down) / (2 * h)
					// float32 rows are off by 1e-7 of values of about 10, in a mean over pairs; over 2h
					if d := math.Abs(got - want); d > 1e-2*max(1, math.Abs(want)) {
						t.Errorf("%s on %d ranks, directed %t: %v along a direction, want %v", kind, ranks, directed, got, want)
					}
				}
			}
		}
	}
}
