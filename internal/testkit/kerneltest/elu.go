package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// eluInputs returns inputs of all sizes from 1e-9 to 1e2, with zeros of both signs.
func eluInputs(n int) []float32 {
	v := Values(n, 1)
	for i := range v {
		v[i] *= float32(math.Pow(10, float64(i%12-9)))
		if i%13 == 3 {
			v[i] = float32(math.Copysign(0, float64(v[i])))
		}
	}
	return v
}

func elu(x float64) float64 {
	if x > 0 {
		return x
	}
	return math.Expm1(x)
}

// BiasELUDropout tests kernels.Ops.BiasELUDropout. An ELU errs by at most 1e-7 of its size, 1.7
// units; the scale of dropout adds one unit. Dropped elements, and no others, are +0.
func (s Suite) BiasELUDropout(t *testing.T) {
	eachMatrix(t, func(t *testing.T, rows, cols int, d *kernels.Dropout) {
		z, bias := eluInputs(rows*cols), guarded(make([]float32, cols))
		insertNonFinite(z)
		for range 2 {
			for i, dst := range [][]float32{poison(rows * cols), z} {
				got := s.outcome(t, dst, func(l *fixture, dst []float32) {
					from := z
					if i > 0 {
						from = dst
					}
					l.BiasELUDropout(l.out(rows, cols, dst), l.in(rows, cols, from), l.in(1, cols, bias), l.drop(d))
				})
				checkELU(t, got, cols, z, bias, d)
			}
			bias = Values(cols, 2)
		}
	})
}

func checkELU(t *testing.T, got []float32, cols int, z, bias []float32, d *kernels.Dropout) {
	t.Helper()
	for i, v := range got {
		factor := drop(d, 1, i/cols, i%cols)
		if (factor == 0) != (math.Float32bits(v) == 0) {
			t.Fatalf("element %d, times %v by dropout, is %v (%#x)", i, factor, v, math.Float32bits(v))
		}
		if factor != 0 {
			want := elu(float64(z[i]+bias[i%cols])) * float64(factor)
			compare(t, i, float64(v), want, 2.7*unit*math.Abs(want))
		}
	}
}

// BiasELUDropoutGrad tests kernels.Ops.BiasELUDropoutGrad. The expected gradient is computed from
// z, which is not an input of the kernel. The kernel computes the slope e^z from e^z - 1, which
// rounds to a few units of 1.
func (s Suite) BiasELUDropoutGrad(t *testing.T) {
	eachMatrix(t, func(t *testing.T, rows, cols int, d *kernels.Dropout) {
		z, g, h := eluInputs(rows*cols), Values(rows*cols, 2), Values(rows*cols, 3)
		insertNonFinite(g)
		for i := range h {
			if math.IsNaN(float64(g[i])) || math.IsInf(float64(g[i]), 0) {
				z[i] = 1
			}
			h[i] = drop(d, float32(elu(float64(z[i]))), i/cols, i%cols)
			if z[i] == 0 && drop(d, 1, i/cols, i%cols) != 0 {
				h[i] = float32(math.Copysign(0, -1))
			}
		}
		backward := func(l *fixture, dst, bias, g []float32) {
			to, sums := l.out(rows, cols, dst), l.out(1, cols, bias)
			l.BiasELUDropoutGrad(to, sums, l.in(rows, cols, g), l.in(rows, cols, h), l.drop(d))
		}
		bias := guarded(poison(cols))
		got := s.outcome(t, poison(rows*cols), func(l *fixture, dst []float32) { backward(l, dst, bias, g) })
		checkGuards(t, bias)
		sums := make([]sum, cols)
		for i, v := range got {
			want := drop(d, g[i], i/cols, i%cols)
			compare(t, i, float64(v), float64(want)*math.Exp(math.Min(float64(z[i]), 0)), 6*unit*math.Abs(float64(want)))
			sums[i%cols].add(float64(v))
		}
		same(t, s.outcome(t, g, func(l *fixture, dst []float32) { backward(l, dst, poison(cols), dst) }), got)
		compareSums(t, s.outcome(t, poison(cols), func(l *fixture, bias []float32) {
			backward(l, poison(rows*cols), bias, g)
		}), sums)
	})
}

// ELUDifferences compares the gradient of flat.BiasELUDropout with central differences. Their
// error is step²/6 of a third derivative below 1, plus the rounding of two values below 5,
// divided by the step.
func ELUDifferences(t *testing.T, use func(team *kernels.Team)) {
	const rows, cols, step = 31, 19, 1. / 128
	team := kernels.NewTeam(2)
	defer team.Close()
	use(team)
	z, zeros, ones := Values(rows*cols, 1), make([]float32, cols), make([]float32, rows*cols)
	for i := range ones {
		ones[i] = 1
	}
	at := func(shift float32, d *kernels.Dropout) []float32 {
		h := make([]float32, len(z))
		for i, v := range z {
			h[i] = v + shift
		}
		flat.BiasELUDropout(team, h, rows, cols, h, zeros, d)
		return h
	}
	for _, d := range dropouts(rows) {
		up, down, grad := at(step, d), at(-step, d), make([]float32, len(z))
		flat.BiasELUDropoutGrad(team, grad, make([]float32, cols), rows, cols, ones, at(0, d), d)
		for i, g := range grad {
			scale := float64(drop(d, 1, i/cols, i%cols))
			compare(t, i, float64(g), float64(up[i]-down[i])/(2*step), scale*(step*step/6+10*unit/step))
		}
	}
}

// eachHeads runs f over numbers of rows and heads, and widths.
func eachHeads(t *testing.T, f func(t *testing.T, rows, heads, width int)) {
	for _, rows := range []int{0, 1, size(1031, 79)} {
		for _, heads := range []int{1, 3, 8} {
			for _, width := range []int{0, 1, 7, 16, 33} {
				t.Run(fmt.Sprintf("rows=%d/heads=%d/width=%d", rows, heads, width), func(t *testing.T) { f(t, rows, heads, width) })
			}
		}
	}
}

// MeanHeads tests kernels.Ops.MeanHeads.
func (s Suite) MeanHeads(t *testing.T) {
	eachHeads(t, func(t *testing.T, rows, heads, width int) {
		x, bias := Values(rows*heads*width, 1), Values(width, 2)
		for range 2 {
			want := make([]sum, rows*width)
			for i := range want {
				want[i].add(float64(bias[i%width]))
				for h := range heads {
					want[i].add(float64(x[(i/width*heads+h)*width+i%width]) / float64(heads))
				}
			}
			compareSums(t, s.outcome(t, poison(rows*width), func(l *fixture, dst []float32) {
				l.MeanHeads(l.out(rows, width, dst), heads, l.in(rows, heads*width, x), l.in(1, width, bias))
			}), want)
			insertNonFinite(x)
		}
	})
}

// MeanHeadsGrad tests kernels.Ops.MeanHeadsGrad.
func (s Suite) MeanHeadsGrad(t *testing.T) {
	eachHeads(t, func(t *testing.T, rows, heads, width int) {
		g, want := Values(rows*width, 1), make([]float32, rows*heads*width)
		insertNonFinite(g)
		for i := range want {
			want[i] = g[i/(heads*width)*width+i%width] * (1 / float32(heads))
		}
		same(t, s.outcome(t, poison(len(want)), func(l *fixture, dst []float32) {
			l.MeanHeadsGrad(l.out(rows, heads*width, dst), heads, l.in(rows, width, g))
		}), want)
	})
}
