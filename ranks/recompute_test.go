package ranks

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// Recomputed activations have the same bits in all networks. Deep networks use less memory;
// the summary has the sizes with and without recomputation.
func TestRecompute(t *testing.T) {
	t.Parallel()
	data := generated(t, true)
	all := networks(t)
	for k, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			c := all[name]
			c.Layers, c.Ranks, c.Servers, c.Intervals, c.EvalEvery = 6, 2, 0, 3, 2
			for m, mode := range []string{"pipe", "nopipe"} {
				if !hosttest.Sampled(2, k, m) {
					continue
				}
				c.Mode = mode
				want := train(t, c, data)
				c.Recompute, c.Out = true, c.Out+"-again"
				got := train(t, c, data)
				c.Recompute = false
				if !bytes.Equal(got.model, want.model) {
					t.Errorf("%s: the model is another one", c.Mode)
				}
				sameLosses(t, c.Mode, got.losses(), want.losses(), 0)
				for k, r := range got.Summary.PerRank {
					before := want.Summary.PerRank[k]
					if r.ActivationBytesKept != before.ActivationBytes || before.ActivationBytesKept != before.ActivationBytes {
						t.Errorf("rank %d: kept %d bytes, would have %d", k, before.ActivationBytes, r.ActivationBytesKept)
					}
					saves := strings.HasSuffix(name, "gather-first") && !strings.HasPrefix(name, "sage") || strings.HasPrefix(name, "gat")
					if r.ActivationBytes > before.ActivationBytes || saves && r.ActivationBytes > before.ActivationBytes*9/10 {
						t.Errorf("rank %d: %d bytes of activations, made again %d", k, before.ActivationBytes, r.ActivationBytes)
					}
					if d := before.ArrayBytes - r.ArrayBytes - (before.ActivationBytes - r.ActivationBytes); d < -4096 || d > 4096 {
						t.Errorf("rank %d: %d bytes of arrays, made again %d, of which %d and %d are activations", k, before.ArrayBytes,
							r.ArrayBytes, before.ActivationBytes, r.ActivationBytes)
					}
				}
			}
		})
	}
}

// Asynchronous intervals store their activations.
func TestRecomputeInStepOnly(t *testing.T) {
	t.Parallel()
	c := quick(t)
	c.Mode, c.Recompute = "async", true
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--recompute") {
		t.Errorf("error %v", err)
	}
}
