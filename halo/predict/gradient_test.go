package predict_test

import (
	"math"
	"testing"

	"siafu/halo"
	"siafu/halo/predict"
)

// The gradient of the loss, unrolled over three steps, is that of central differences along the
// gradient of each matrix, in undirected and directed graphs, from the current epoch's rows and from past ones.
func TestPredictorGradients(t *testing.T) {
	// A step of 3e-3 of a loss near 1 in float32 is wrong by 1e-4 (rounding) and 1e-3 (truncation).
	const step, tolerance = 3e-3, 2e-3
	learned(t, func(t *testing.T, kind string) {
		for _, policy := range []string{"every:4", "drift:0.1,4"} {
			for _, fresh := range []bool{true, false} {
				r := newRun(t, kind, policy, 2, 2048, func(o *predict.Options) { o.Fresh = fresh })
				epoch := 1
				for ; epoch < 16; epoch++ {
					r.epoch(epoch, ownRows(epoch, nil), every(4, epoch))
				}
				weights, gradient, blocks, loss, err := r.Gradient(halo.Slot{Epoch: epoch - 1, Layer: 1})
				if err != nil {
					t.Fatal(err)
				}
				for name, at := range blocks {
					w, g, norm := weights[at[0]:at[1]], gradient[at[0]:at[1]], 0.0
					for _, x := range g {
						norm += float64(x) * float64(x)
					}
					norm = math.Sqrt(norm)
					move := func(by float64) float64 {
						for i, x := range g {
							w[i] += float32(by / norm * float64(x))
						}
						return loss()
					}
					got := (move(step) - move(-2*step)) / (2 * step)
					move(step)
					if !(math.Abs(got-norm) <= tolerance*(1+norm)) {
						t.Errorf("%s, fresh %t: derivative by %s is %v, by differences %v", policy, fresh, name, norm, got)
					}
				}
			}
		}
	})
}
