package kernels

import (
	"math"
	"testing"
)

// Negative samples are uniform over all other vertices, and different in every epoch: counts
// are within 5 standard deviations of the expected value. Shares add up and differ by at most
// one.
func TestNegativeSamples(t *testing.T) {
	const n, draws = 7, 14_000
	var counts [n]int
	same := 0
	for k := range uint32(draws) {
		x := SampleNegative(3, 1, 5, k, n)
		counts[x]++
		if SampleNegative(3, 2, 5, k, n) == x {
			same++
		}
	}
	within := func(what string, got int, p float64) {
		if math.Abs(float64(got)-p*draws) > 5*math.Sqrt(p*(1-p)*draws) {
			t.Errorf("%s: %d times in %d draws, want about %.0f", what, got, draws, p*draws)
		}
	}
	for v, got := range counts {
		if p := 1.0 / (n - 1); v != 5 {
			within("a vertex", got, p)
		} else if got > 0 {
			t.Errorf("a vertex is paired with itself")
		}
	}
	within("the same in the next epoch", same, 1.0/(n-1))
	for _, total := range []int64{0, 3, 7, 1 << 45} {
		const many = 1<<32 - 5
		for _, n := range []int64{5, 7, many} {
			if Share(0, total, n) != 0 || Share(n, total, n) != total {
				t.Errorf("%d of %d: %d to %d", total, n, Share(0, total, n), Share(n, total, n))
			}
			for v := range int64(5) {
				if d := Share(v+1, total, n) - Share(v, total, n) - total/n; d < 0 || d > 1 {
					t.Errorf("%d of %d: vertex %d has %d more than the mean", total, n, v, d)
				}
			}
		}
	}
}
