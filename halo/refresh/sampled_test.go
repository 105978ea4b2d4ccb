package refresh_test

import (
	"fmt"
	"math"
	"testing"

	"siafu/halo"
	"siafu/halo/refresh"
)

// A vertex outside the sample has the score of an absent row. A sampled vertex has its own
// row.
func TestSampleOfAttention(t *testing.T) {
	together(t, planted(t), "none", func(m *member) error {
		const l = 0
		s, w := m.timed(t, "sample:0.5", []halo.Shape{{Layer: l, Width: widths[l], Scores: 1}}), widths[l]
		for epoch := 1; epoch <= 3; epoch++ {
			at := halo.Slot{Epoch: epoch, Layer: l}
			view, err := seen(s, at, show(m.shard.Own, epoch, l))
			if err != nil {
				return err
			}
			for i, v := range m.shard.Ghosts {
				score := view.Rows.Host()[i*w+w-1]
				if drawn := refresh.Drawn(seed, epoch, v, 0.5); drawn != (score == row(v, epoch, l, w-1)) ||
					!drawn && math.Exp(0.01*float64(score)) != 0 {
					return fmt.Errorf("epoch %d: the score of vertex %d is %v", epoch, v, score)
				} else if first := view.Rows.Host()[i*w]; drawn && first != row(v, epoch, l, 0) {
					return fmt.Errorf("epoch %d: the row of vertex %d begins with %v, which is scaled", epoch, v, first)
				}
			}
		}
		return m.Barrier()
	})
}

// The size of a sample matches its probability, and its vertices differ between epochs.
func TestSampledPolicy(t *testing.T) {
	const n = 100_000
	for _, p := range []float64{0.01, 0.5, 0.9} {
		drawn, twice := 0, 0
		for v := range uint32(n) {
			if refresh.Drawn(1, 1, v, p) {
				drawn++
				if refresh.Drawn(1, 2, v, p) {
					twice++
				}
			}
		}
		// Five standard deviations of a binomial distribution.
		for _, c := range []struct {
			got  int
			want float64
		}{{drawn, p}, {twice, p * p}} {
			if math.Abs(float64(c.got)-n*c.want) > 5*math.Sqrt(n*c.want*(1-c.want)) {
				t.Errorf("with probability %g %d of %d are drawn, want about %g", p, c.got, n, n*c.want)
			}
		}
	}
}
