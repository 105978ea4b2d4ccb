package model

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// defined returns a score by its definition, in float64.
func (t TripleScore) defined(s, w, o []float32) (sum float64) {
	half := len(s) / 2
	for j := range s {
		switch {
		case t == "":
			sum += float64(s[j]) * float64(o[j])
		case t == DistMult:
			sum += float64(s[j]) * float64(w[j]) * float64(o[j])
		case j < half:
			at := func(x []float32) complex128 { return complex(float64(x[j]), float64(x[half+j])) }
			sum += real(at(s) * at(w) * cmplx.Conj(at(o)))
		}
	}
	return sum
}

// Queries give the score from either end, and are its derivatives. The gradient of w is the derivative, computed
// in any slices of columns.
func TestTripleScores(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, kind := range []TripleScore{"", DistMult, ComplEx} {
		for _, width := range []int{2, 8, 34} {
			row := func() []float32 {
				x := make([]float32, width)
				for j := range x {
					x[j] = float32(rng.NormFloat64())
				}
				return x
			}
			s, w, o, q := row(), row(), row(), make([]float32, width)
			want := kind.defined(s, w, o)
			for k, ends := range [2][2][]float32{{s, o}, {o, s}} {
				kind.Query(q, ends[0], w, k == 1)
				got := 0.0
				for j := range q {
					got += float64(q[j]) * float64(ends[1][j])
				}
				if math.Abs(got-want) > 1e-4 {
					t.Errorf("%q, width %d, end %d: %v, want %v", kind, width, k, got, want)
				}
			}
			if kind == "" {
				continue
			}
			grad := make([]float32, width)
			for lo, columns := 0, kind.Columns(width); lo < columns; lo += 3 {
				kind.AddGrad(grad, s, o, 2, lo, min(lo+3, columns))
			}
			for j := range w {
				up := append([]float32(nil), w...)
				up[j]++ // the score is linear in w
				if slope := 2 * (kind.defined(s, up, o) - want); math.Abs(slope-float64(grad[j])) > 1e-4 {
					t.Errorf("%q, width %d: derivative %d is %v, want %v", kind, width, j, grad[j], slope)
				}
			}
		}
	}
}
