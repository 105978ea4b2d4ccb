package kernels

import "math"

// Rows divided by their L2 norms.
//
//	dst[r] = z[r] / max(‖z[r]‖, 1e-12)
//	grad[r] = (g[r] - y (y·g[r])) / ‖z[r]‖,  y = z[r]/‖z[r]‖; 0 where the norm is no larger than 1e-12
//
// In the unit ball rows whose norm is no larger than 1 stay as they are, and so do their gradients.
//
// Variant: one worker computes a row, sums are float64, and the backward pass recomputes y
// from z.
//
// Design note: below 1e-12 the derivative of the quotient is 1e12, which PyTorch uses for a
// row of zeros: one vertex without features would then destroy all weights.

// leastNorm replaces smaller norms.
const leastNorm = 1e-12

// UnitRows implements Ops.
func (t *Team) UnitRows(dst, z Mat, ball bool) {
	mustFit(isSameShape(dst, z))
	do(t, unitsTask{dst: dst.Host(), z: z.Host(), cols: dst.Cols, ball: ball}, dst.Rows, rowGrain(dst.Cols))
}

// UnitRowsGrad implements Ops.
func (t *Team) UnitRowsGrad(dst, g, z Mat, ball bool) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, z))
	do(t, unitsTask{dst.Host(), g.Host(), z.Host(), dst.Cols, ball, true}, dst.Rows, rowGrain(dst.Cols))
}

type unitsTask struct {
	dst, g, z []float32
	cols      int
	ball      bool
	back      bool
}

func (k *unitsTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		dst, z := rowOf(k.dst, r, k.cols), rowOf(k.z, r, k.cols)
		norm := math.Sqrt(dot64(z, z))
		switch {
		case k.ball && norm <= 1:
			if k.back {
				z = rowOf(k.g, r, k.cols)
			}
			copy(dst, z)
		case k.back:
			unitGrad(dst, rowOf(k.g, r, k.cols), z, norm)
		default:
			norm = max(norm, leastNorm)
			for j, v := range z {
				dst[j] = float32(float64(v) / norm)
			}
		}
	}
}

// unitGrad computes a row of UnitRowsGrad.
func unitGrad(dst, g, z []float32, norm float64) {
	if norm <= leastNorm {
		clear(dst)
		return
	}
	along := dot64(g, z) / (norm * norm)
	for j, v := range g {
		dst[j] = float32((float64(v) - float64(along*float64(z[j]))) / norm)
	}
}

// dot64 returns Σ x·y, in order.
func dot64(x, y []float32) (sum float64) {
	for j, v := range x {
		sum += float64(v) * float64(y[j])
	}
	return sum
}
