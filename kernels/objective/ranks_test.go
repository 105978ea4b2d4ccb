package objective

import (
	"math"
	"testing"
)

// Ranks of 1, 2.5 (two equal scores and one higher) and 11.
func TestRanks(t *testing.T) {
	var r Ranks
	var m Metrics
	for _, x := range [][2]int64{{0, 0}, {1, 1}, {10, 0}} {
		r.Add(x[0], x[1])
	}
	r.Set(&m)
	for i, want := range []float64{(1 + 1/2.5 + 1./11) / 3, 1. / 3, 2. / 3, 2. / 3} {
		if got := *[]*float64{m.MRR, m.Hits1, m.Hits3, m.Hits10}[i]; math.Abs(got-want) > 1e-12 {
			t.Errorf("metric %d is %v, want %v", i, got, want)
		}
	}
}
