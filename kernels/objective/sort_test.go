package objective

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Scores are sorted as by comparisons, for any signs and magnitudes.
func TestSortDown(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	for _, n := range []int{0, 1, 2, 3000} {
		got := make([]float32, n)
		for i := range got {
			if got[i] = math.Float32frombits(rng.Uint32()); got[i] != got[i] || i%3 == 0 {
				got[i] = float32(rng.IntN(5)) - 2
			}
		}
		want := slices.Clone(got)
		slices.Sort(want)
		slices.Reverse(want)
		if sortDown(got); !slices.Equal(got, want) {
			t.Errorf("%d scores are %v, want %v", n, got[:min(n, 20)], want[:min(n, 20)])
		}
	}
}
