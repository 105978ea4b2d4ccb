package kernels

import (
	"math"
	"slices"
	"testing"
)

// A draw is k different numbers below n, ascending. Numbers and pairs are uniform, within 5
// standard deviations of 20,000 draws.
func TestSample(t *testing.T) {
	const n, draws = 11, 20_000
	for _, k := range []int{1, 3, 10, 11, 40} {
		var single [n]int
		var pairs [n][n]int
		for id := range uint32(draws) {
			got := Sample{Seed: 9, Step: 4, Layer: 1}.Draw([]uint32{7}, id, k, n)
			if got = got[1:]; len(got) != min(k, n) || !slices.IsSorted(got) ||
				len(slices.Compact(slices.Clone(got))) != len(got) || got[len(got)-1] >= n {
				t.Fatalf("%d of %d: %v", k, n, got)
			}
			for i, x := range got {
				single[x]++
				for _, y := range got[:i] {
					pairs[y][x]++
				}
			}
		}
		of := float64(min(k, n))
		within := func(what string, got int, p float64) {
			if d := math.Abs(float64(got) - p*draws); d > 5*math.Sqrt(p*(1-p)*draws)+1e-9 {
				t.Errorf("%d of %d: %s %d times in %d draws, want about %.0f", k, n, what, got, draws, p*draws)
			}
		}
		for x := range n {
			within("a number", single[x], of/n)
			for y := range x {
				within("a pair", pairs[y][x], of*(of-1)/(n*(n-1)))
			}
		}
	}
}

// Different seeds, steps, layers and vertices have different streams.
func TestSampleStreams(t *testing.T) {
	want := Sample{Seed: 1, Step: 2, Layer: 3}.Draw(nil, 4, 20, 1000)
	for _, s := range []Sample{{2, 2, 3}, {1, 3, 3}, {1, 2, 2}, {1 << 40, 2, 3}} {
		if slices.Equal(s.Draw(nil, 4, 20, 1000), want) {
			t.Errorf("%+v draws the same", s)
		}
	}
	if slices.Equal(Sample{Seed: 1, Step: 2, Layer: 3}.Draw(nil, 5, 20, 1000), want) {
		t.Error("another vertex draws the same")
	}
}
