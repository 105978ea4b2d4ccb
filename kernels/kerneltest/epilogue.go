package kerneltest

import (
	"testing"

	"siafu/kernels"
	"siafu/kernels/kerneltest/flat"
)

// BiasReLUDropout runs an implementation of flat.BiasReLUDropout.
func BiasReLUDropout(t *testing.T, forward func(team *kernels.Team, dst []float32, rows, cols int, z, bias []float32, relu bool, d *kernels.Dropout)) {
	eachMatrix(t, func(t *testing.T, rows, cols int, d *kernels.Dropout) {
		z := Values(rows*cols, 1)
		spoil(z)
		for _, relu := range []bool{false, true} {
			for _, bias := range [][]float32{nil, Values(cols, 2)} {
				want := make([]float32, rows*cols)
				for i := range want {
					want[i] = drop(d, activate(z[i], bias, i%max(cols, 1), relu), i/cols, i%cols)
				}
				same(t, outcome(t, poison(rows*cols), func(team *kernels.Team, dst []float32) {
					forward(team, dst, rows, cols, z, bias, relu, d)
				}), want)
				same(t, outcome(t, z, func(team *kernels.Team, dst []float32) {
					forward(team, dst, rows, cols, dst, bias, relu, d)
				}), want)
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

// MatMulBiasReLUDropout tests an implementation of flat.MatMulBiasReLUDropout. The bits must
// equal those of the product followed by the epilogue, which are tested separately.
func MatMulBiasReLUDropout(t *testing.T, dense func(team *kernels.Team, dst []float32, m, n, k int, a, b, bias []float32, relu bool, d *kernels.Dropout)) {
	for _, k := range []int{0, 3, 40} {
		eachMatrix(t, func(t *testing.T, m, n int, d *kernels.Dropout) {
			a, b, bias := Values(m*k, 1), Values(k*n, 2), Values(n, 3)
			for _, relu := range []bool{false, true} {
				var want []float32
				for i, run := range []func(team *kernels.Team, dst []float32){
					func(team *kernels.Team, dst []float32) { dense(team, dst, m, n, k, a, b, bias, relu, d) },
					func(team *kernels.Team, dst []float32) {
						dense(team, dst, m, n, k, a, b, nil, false, nil)
						flat.BiasReLUDropout(team, dst, m, n, dst, bias, relu, d)
					},
				} {
					got := outcome(t, poison(m*n), run)
					if i > 0 {
						same(t, got, want)
					}
					want = got
				}
			}
		})
	}
}

// BiasReLUDropoutGrad tests an implementation of flat.BiasReLUDropoutGrad. The expected gradient
// is computed from z, which is not an input of the kernel.
func BiasReLUDropoutGrad(t *testing.T, backward func(team *kernels.Team, dst, bias []float32, rows, cols int, g, h []float32, relu bool, d *kernels.Dropout)) {
	eachMatrix(t, func(t *testing.T, rows, cols int, d *kernels.Dropout) {
		z, g := Values(rows*cols, 1), Values(rows*cols, 2)
		spoil(g)
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
			same(t, outcome(t, poison(rows*cols), func(team *kernels.Team, dst []float32) {
				backward(team, dst, nil, rows, cols, g, h, relu, d)
			}), want)
			same(t, outcome(t, g, func(team *kernels.Team, dst []float32) {
				backward(team, dst, poison(cols), rows, cols, dst, h, relu, d)
			}), want)
			compareSums(t, outcome(t, poison(cols), func(team *kernels.Team, bias []float32) {
				backward(team, poison(rows*cols), bias, rows, cols, g, h, relu, d)
			}), sums)
		}
	})
}
