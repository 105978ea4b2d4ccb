package kerneltest

import (
	"math"
	"slices"
	"testing"

	"siafu/kernels"
)

// elements tests elementwise kernels, in place and out of place. A blend has three roundings. An
// activation and its slope err by at most two units of their size, or of 1e-30 near zero.
func (s Suite) elements(t *testing.T) {
	const cols = 7
	rows := size(5001, 301)
	x, start := eluInputs(rows*cols), Values(rows*cols, 2)
	l := s.one()
	defer l.done()
	X, poisoned := l.in(rows, cols, x), kernels.PlaceMat(l, l.arena, rows, cols, poison(rows*cols))
	for _, keep := range []float32{0, 1, 0.9} {
		dst := kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(start))
		if keep == 0 {
			dst = poisoned
		}
		l.Blend(dst, keep, X, 0.3)
		for i, v := range l.read(dst) {
			a, b := 0.3*float64(x[i]), 0.0
			if keep != 0 {
				b = float64(keep) * float64(start[i])
			}
			compare(t, i, float64(v), a+b, 3*unit*(math.Abs(a)+math.Abs(b)))
		}
	}
	l.Blend(poisoned, 0, poisoned, 2)
	for i, v := range l.read(poisoned) {
		compare(t, i, float64(v), 2*0.3*float64(x[i]), 4*unit*math.Abs(float64(x[i])))
	}
	for f := kernels.Identity; f <= kernels.LeakyReLU; f++ {
		g := l.in(rows, cols, start)
		out, grad := kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(x)), kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(x))
		l.Activate(out, out, f)
		l.ActivateGrad(grad, g, grad, f)
		back := l.read(grad)
		for i, v := range l.read(out) {
			want, slope := activation(f, float64(x[i]))
			compare(t, i, float64(v), want, 3*unit*math.Abs(want)+1e-30)
			compare(t, i, float64(back[i]), slope*float64(start[i]), 4*unit*math.Abs(float64(start[i])))
		}
	}
}

// activation returns f(x) and f'(x).
func activation(f kernels.Activation, x float64) (value, slope float64) {
	switch f {
	case kernels.ReLU:
		return max(x, 0), 0.5 + math.Copysign(0.5, x) - zero(x)
	case kernels.ELU:
		return elu(x), math.Exp(min(x, 0))
	case kernels.GELU:
		phi := math.Erfc(-x/math.Sqrt2) / 2
		return x * phi, phi + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	case kernels.LeakyReLU:
		return max(x, 0.01*x), 0.505 + math.Copysign(0.495, x) - 0.99*zero(x)
	}
	return x, 1
}

// zero returns 1 at +0, where a slope is the left derivative.
func zero(x float64) float64 {
	if math.Float64bits(x) == 0 {
		return 1
	}
	return 0
}
