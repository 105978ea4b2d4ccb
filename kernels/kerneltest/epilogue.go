package kerneltest

import (
	"testing"

	"siafu/kernels"
)

// BiasReLUDropout runs an implementation of kernels.BiasReLUDropout.
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

// BiasReLUDropoutGrad runs an implementation of kernels.BiasReLUDropoutGrad.
// The expected gradient comes from z, which the kernel does not see.
func BiasReLUDropoutGrad(t *testing.T, backward func(team *kernels.Team, dst []float32, rows, cols int, g, h []float32, relu bool, d *kernels.Dropout)) {
	eachMatrix(t, func(t *testing.T, rows, cols int, d *kernels.Dropout) {
		z, g := Values(rows*cols, 1), Values(rows*cols, 2)
		spoil(g)
		for _, relu := range []bool{false, true} {
			h, want := make([]float32, rows*cols), make([]float32, rows*cols)
			for i := range want {
				h[i] = drop(d, activate(z[i], nil, 0, relu), i/cols, i%cols)
				if !relu || z[i] > 0 {
					want[i] = drop(d, g[i], i/cols, i%cols)
				}
			}
			h = guarded(h)
			same(t, outcome(t, poison(rows*cols), func(team *kernels.Team, dst []float32) {
				backward(team, dst, rows, cols, g, h, relu, d)
			}), want)
			same(t, outcome(t, g, func(team *kernels.Team, dst []float32) {
				backward(team, dst, rows, cols, dst, h, relu, d)
			}), want)
		}
	})
}
