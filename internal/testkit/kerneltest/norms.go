package kerneltest

import (
	"math"
	"slices"
	"testing"

	"siafu/kernels"
)

// norms tests sums and normalisations of rows and columns, in place too. Sums are in float64:
// the error is one unit of 2^-53 of the sum of sizes per term.
func (s Suite) norms(t *testing.T) {
	for _, shape := range [][2]int{{0, 3}, {1, 1}, {7, 5}, {size(3001, 301), 33}, {size(700, 70), 64}} {
		s.moments(t, shape[0], shape[1])
		s.affine(t, shape[0], shape[1])
		s.layerNorm(t, shape[0], shape[1])
		s.unitRows(t, shape[0], shape[1])
	}
}

func (s Suite) moments(t *testing.T, rows, cols int) {
	x, y := Values(rows*cols, 1), Values(rows*cols, 2)
	for i := range x {
		x[i] += 1000 // a variance is a small difference of large sums
	}
	l := s.one()
	defer l.done()
	X, Y := l.in(rows, cols, x), l.in(rows, cols, y)
	for _, other := range []struct {
		m kernels.Mat
		v []float32
	}{{X, x}, {Y, y}} {
		dst := kernels.NewVector[float64](l, l.arena, 2*cols)
		kernels.WriteVector(l, dst, slices.Repeat([]float64{math.NaN()}, 2*cols))
		l.ColumnMoments(dst, X, other.m)
		got := kernels.FetchVector(l, dst)
		for c := range cols {
			first, second, sizes := 0.0, 0.0, 0.0
			for r := range rows {
				v, w := float64(x[r*cols+c]), float64(other.v[r*cols+c])
				first, second, sizes = first+v, second+v*w, sizes+math.Abs(v*w)+math.Abs(v)
			}
			bound := float64(rows+1) * sizes / (1 << 52)
			compare(t, c, got[c], first, bound)
			compare(t, cols+c, got[cols+c], second, bound)
		}
	}
}

func (s Suite) affine(t *testing.T, rows, cols int) {
	g, z, a, b, c := Values(rows*cols, 1), Values(rows*cols, 2), Values(cols, 3), Values(cols, 4), Values(cols, 5)
	l := s.one()
	defer l.done()
	A, B, C := l.in(1, cols, a), l.in(1, cols, b), l.in(1, cols, c)
	for _, with := range []bool{true, false} {
		dst, Z := kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(g)), kernels.Mat{}
		if with {
			Z = l.in(rows, cols, z)
		}
		l.AffineColumns(dst, dst, A, Z, B, C)
		for i, v := range l.read(dst) {
			j := i % cols
			want := float64(g[i])*float64(a[j]) + float64(c[j])
			if with {
				want += float64(z[i]) * float64(b[j])
			}
			compare(t, i, float64(v), want, 5*unit*(math.Abs(float64(g[i]*a[j]))+math.Abs(float64(z[i]*b[j]))+math.Abs(float64(c[j]))))
		}
	}
}

// layerNorm compares with the formulae in float64. If elements are about 1, an error is a few
// units of the sum's terms.
func (s Suite) layerNorm(t *testing.T, rows, cols int) {
	const eps = 1e-5
	g, z, gain, bias := Values(rows*cols, 1), Values(rows*cols, 2), Values(cols, 3), Values(cols, 4)
	l := s.one()
	defer l.done()
	Z, W, B := l.in(rows, cols, z), l.in(1, cols, gain), l.in(1, cols, bias)
	out, grad := kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(z)), kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(g))
	ggain, gbias := kernels.NewMat(l, l.arena, 1, cols), kernels.NewMat(l, l.arena, 1, cols)
	l.LayerNorm(out, out, W, B, eps)
	l.LayerNormGrad(grad, ggain, gbias, grad, Z, W, eps)
	h, back := l.read(out), l.read(grad)
	sums, sizes := make([]float64, 2*cols), make([]float64, cols)
	for r := range rows {
		at, n := r*cols, float64(cols)
		mean, variance, m, along := 0.0, 0.0, 0.0, 0.0
		for _, v := range z[at : at+cols] {
			mean += float64(v) / n
		}
		for _, v := range z[at : at+cols] {
			variance += (float64(v) - mean) * (float64(v) - mean) / n
		}
		scale := 1 / math.Sqrt(variance+eps)
		for c := range cols {
			d, x := float64(g[at+c])*float64(gain[c]), (float64(z[at+c])-mean)*scale
			m, along = m+d/n, along+d*x/n
		}
		for c := range cols {
			x, d := (float64(z[at+c])-mean)*scale, float64(g[at+c])*float64(gain[c])
			off := 8 * unit * (scale + math.Abs(x) + 1)
			compare(t, at+c, float64(h[at+c]), x*float64(gain[c])+float64(bias[c]), off*2)
			compare(t, at+c, float64(back[at+c]), scale*(d-m-x*along), scale*(2+math.Abs(x))*off)
			sums[c], sums[cols+c], sizes[c] = sums[c]+float64(g[at+c]), sums[cols+c]+float64(g[at+c])*x,
				sizes[c]+off*math.Abs(float64(g[at+c]))
		}
	}
	for c, v := range l.read(gbias) {
		compare(t, c, float64(v), sums[c], sizes[c])
	}
	for c, v := range l.read(ggain) {
		compare(t, c, float64(v), sums[cols+c], sizes[c]+4*unit*math.Abs(sums[cols+c]))
	}
}

// unitRows compares with the formulae, also in place. Norms of rows increase from 0, so that for
// any size some rows are in the unit ball. There, rows and gradients stay unchanged. Rows are
// skipped if their norm is so near to 1 that the order of summation decides.
func (s Suite) unitRows(t *testing.T, rows, cols int) {
	const near = 1e-9
	for _, ball := range []bool{false, true} {
		z, g := Values(rows*cols, 1), Values(rows*cols, 2)
		for i := range z {
			z[i] *= 4 * float32(i/cols) / float32(rows)
		}
		l := s.one()
		Z := l.in(rows, cols, z)
		out, grad := kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(z)), kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(g))
		l.UnitRowsGrad(grad, grad, Z, ball)
		l.UnitRows(out, out, ball)
		y, back := l.read(out), l.read(grad)
		for r := range rows {
			at, square, along := r*cols, 0.0, 0.0
			for c := range cols {
				square, along = square+float64(z[at+c])*float64(z[at+c]), along+float64(z[at+c])*float64(g[at+c])
			}
			norm := math.Sqrt(square)
			if ball && math.Abs(norm-1) < near {
				continue
			}
			for c := range cols {
				want, slope := 0.0, 0.0
				switch {
				case ball && norm <= 1:
					want, slope = float64(z[at+c]), float64(g[at+c])
				case norm > 0:
					want = float64(z[at+c]) / norm
					slope = (float64(g[at+c]) - want*along/norm) / norm
				}
				// Sums and quotients are in float64. They err by parts in 1e12 of the subtracted
				// value.
				compare(t, at+c, float64(y[at+c]), want, unit*math.Abs(want))
				compare(t, at+c, float64(back[at+c]), slope, unit*math.Abs(slope)+1e-12*(1+math.Abs(slope))/max(norm, 1e-6))
			}
		}
		l.done()
	}
}

// slopes tests ReLUs with a learned slope, in place and out of place.
func (s Suite) slopes(t *testing.T) {
	for _, rows := range []int{0, 1, size(9001, 901)} {
		const cols = 3
		z, g, slope := Values(rows*cols, 1), Values(rows*cols, 2), []float32{-0.3}
		l := s.one()
		G, W := l.in(rows, cols, g), l.in(1, 1, slope)
		out, grad := kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(z)), kernels.PlaceMat(l, l.arena, rows, cols, poison(rows*cols))
		of := kernels.NewMat(l, l.arena, 1, 1)
		l.PReLU(out, out, W)
		l.PReLUGrad(grad, of, G, l.in(rows, cols, z), W)
		h, back, sum, sizes := l.read(out), l.read(grad), 0.0, 0.0
		for i, v := range z {
			f := 1.0
			if !(v > 0) {
				f = float64(slope[0])
				sum, sizes = sum+float64(g[i])*float64(v), sizes+math.Abs(float64(g[i])*float64(v))
			}
			compare(t, i, float64(h[i]), f*float64(v), 2*unit)
			compare(t, i, float64(back[i]), f*float64(g[i]), 2*unit)
		}
		compare(t, 0, float64(l.read(of)[0]), sum, 2*unit*math.Abs(sum)+1e-12*sizes)
		l.done()
	}
}

// largers tests maxima of three matrices with ties, and their gradients. A gradient flows to the
// first matrix that holds the maximum.
func (s Suite) largers(t *testing.T) {
	const cols = 3
	rows := size(4001, 401)
	n := rows * cols
	a, b, g := Values(n, 1), Values(n, 2), Values(n, 3)
	for i := 0; i < n; i += 5 {
		b[i] = a[i]
	}
	l := s.one()
	defer l.done()
	A, B := l.in(rows, cols, a), l.in(rows, cols, b)
	top, left := kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(b)), kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(g))
	ga, gb := kernels.PlaceMat(l, l.arena, rows, cols, poison(n)), kernels.PlaceMat(l, l.arena, rows, cols, slices.Clone(g))
	l.Larger(top, A)
	l.LargerGrad(ga, left, A, top, false)
	l.LargerGrad(gb, left, B, top, true)
	m, toA, toB, rest := l.read(top), l.read(ga), l.read(gb), l.read(left)
	for i := range m {
		want, wantB := g[i], g[i]
		if a[i] < b[i] {
			want, wantB = 0, 2*g[i]
		}
		if m[i] != max(a[i], b[i]) || toA[i] != want || toB[i] != wantB || rest[i] != 0 {
			t.Fatalf("element %d is %g of %g and %g, gradients %g, %g and left %g of %g", i, m[i], a[i], b[i],
				toA[i], toB[i], rest[i], g[i])
		}
	}
}
