package ranks

import (
	"path/filepath"
	"strings"
	"testing"

	"siafu/graph/pairs"
)

// An edge is ranked among all vertices without an edge to its source, however many are requested, on any
// number of ranks. Hits@K needs K pairs without an edge.
func TestLinksOfSmallGraphs(t *testing.T) {
	t.Parallel()
	whole := generatedOf(t, 60, 300, false)
	var first float64
	for k, ranked := range []int{64, 500, 500} {
		data := filepath.Join(t.TempDir(), "links")
		if _, err := pairs.HoldOut(whole, data,
			pairs.HoldOutOptions{Split: "70/10/20", Ranked: ranked, Negatives: 15, Seed: 3}, false); err != nil {
			t.Fatal(err)
		}
		c := quick(t)
		c.Epochs, c.Dropout, c.EvalEvery, c.Servers, c.Ranks = 5, 0, 0, 0, k+1
		m := train(t, c, data).Summary.Metrics.Test
		if k == 0 {
			first = *m.MRR
		}
		if d := *m.MRR - first; d > 1e-6 || d < -1e-6 || m.Hits10 == nil || m.Hits20 != nil {
			t.Errorf("among %d vertices on %d ranks MRR is %v, want %v; %v", ranked, k+1, *m.MRR, first, m)
		}
		c.Monitor = "hits@20"
		if err := Train(t.Context(), c, data, IO{Out: t.Output(), Err: t.Output()}); err == nil ||
			!strings.Contains(err.Error(), "does not have this metric") {
			t.Errorf("hits@20 of 15 pairs: %v", err)
		}
	}
}
