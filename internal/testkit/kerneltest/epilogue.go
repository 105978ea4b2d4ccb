package kerneltest

import (
	"testing"

	"siafu/kernels"
)

// BiasReLUDropout tests kernels.Ops.BiasReLUDropout.
func (s Suite) BiasReLUDropout(t *testing.T) {
	eachMatrix(t, func(t *testing.T, rows, cols int, d *kernels.Dropout) {
		z := Values(rows*cols, 1)
		insertNonFinite(z)
		for _, relu := range []bool{false, true} {
			for _, bias := range [][]float32{nil, Values(cols, 2)} {
				want := make([]float32, rows*cols)
				for i := range want {
					want[i] = drop(d, activate(z[i], bias, i%max(cols, 1), relu), i/cols, i%cols)
				}
				s.both(t, rows, cols, z, want, func(l *fixture, dst, z kernels.Mat) {
					l.BiasReLUDropout(dst, z, l.in(1, cols, bias), relu, l.drop(d))
				})
			}
		}
	})
}

func activate(z float32, bias []float32, col int, relu bool) float32 {
	if bias != nil {
		z += bias[col]
	}
	if relu && z < 0 {
		return 0
	}
	return z
}

// MatMulBiasReLUDropout tests kernels.Ops.MatMulBiasReLUDropout. The bits must equal the bits of
// the product followed by the epilogue, which are tested separately.
func (s Suite) MatMulBiasReLUDropout(t *testing.T) {
	for _, k := range []int{0, 3, 40} {
		eachMatrix(t, func(t *testing.T, m, n int, d *kernels.Dropout) {
			a, b, bias := Values(m*k, 1), Values(k*n, 2), Values(n, 3)
			for _, relu := range []bool{false, true} {
				dense := func(l *fixture, dst kernels.Mat, bias []float32, relu bool, d *kernels.Dropout) {
					l.MatMulBiasReLUDropout(dst, l.in(m, k, a), l.in(k, n, b), l.in(1, n, bias), relu, l.drop(d))
				}
				same(t, s.outcome(t, poison(m*n), func(l *fixture, dst []float32) {
					dense(l, l.out(m, n, dst), bias, relu, d)
				}), s.outcome(t, poison(m*n), func(l *fixture, dst []float32) {
					to := l.out(m, n, dst)
					dense(l, to, nil, false, nil)
					l.BiasReLUDropout(to, to, l.in(1, n, bias), relu, l.drop(d))
				}))
			}
		})
	}
}

// BiasReLUDropoutGrad tests kernels.Ops.BiasReLUDropoutGrad. The expected gradient is computed
// from z, which is not an input of the kernel.
func (s Suite) BiasReLUDropoutGrad(t *testing.T) {
	eachMatrix(t, func(t *testing.T, rows, cols int, d *kernels.Dropout) {
		z, g := Values(rows*cols, 1), Values(rows*cols, 2)
		insertNonFinite(g)
		for _, relu := range []bool{false, true} {
			h, want, sums := make([]float32, rows*cols), make([]float32, rows*cols), make([]sum, cols)
			for i := range want {
				h[i] = drop(d, activate(z[i], nil, 0, relu), i/cols, i%cols)
				if !relu || z[i] > 0 {
					want[i] = drop(d, g[i], i/cols, i%cols)
				}
				sums[i%cols].add(float64(want[i]))
			}
			h = guarded(h)
			backward := func(l *fixture, dst, bias, g []float32) {
				to, sums := l.out(rows, cols, dst), l.out(1, cols, bias)
				l.BiasReLUDropoutGrad(to, sums, l.in(rows, cols, g), l.in(rows, cols, h), relu, l.drop(d))
			}
			same(t, s.outcome(t, poison(rows*cols), func(l *fixture, dst []float32) { backward(l, dst, nil, g) }), want)
			same(t, s.outcome(t, g, func(l *fixture, dst []float32) { backward(l, dst, poison(cols), dst) }), want)
			compareSums(t, s.outcome(t, poison(cols), func(l *fixture, bias []float32) {
				backward(l, poison(rows*cols), bias, g)
			}), sums)
		}
	})
}
