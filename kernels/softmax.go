package kernels

import (
	"math"

	"siafu/internal/elementary"
	"siafu/kernels/internal/avx"
)

// Softmax of rows.
//
//	dst[r][c] = exp(x[r][c]) / Σ_j exp(x[r][j])
//
// Variant: each row's maximum is subtracted before exp; exponentials and sums in float64. Package avx computes
// several rows at once.

// Softmax implements Ops.
func (t *Team) Softmax(dst, x Mat) {
	mustFit(isSameShape(dst, x))
	if dst.Cols > 0 {
		do(t, softmaxTask{dst.Host(), x.Host(), dst.Cols, t.set}, dst.Rows, avx.SoftmaxRows)
	}
}

type softmaxTask struct {
	dst, x []float32
	cols   int
	set    avx.Set
}

func (k *softmaxTask) chunk(lo, hi int) {
	s := softmaxOfRange(lo, hi)
	softmaxRows(k.set, &s, k.dst, k.x, k.cols, 1)
}

// softmaxOfRange returns a Softmax of the rows [lo, hi).
func softmaxOfRange(lo, hi int) avx.Softmax {
	s := avx.Softmax{Count: hi - lo}
	for i := range s.Count {
		s.Rows[i] = uint32(lo + i)
	}
	return s
}

// rowMaxima sets s.Tops to the largest elements of the rows of x that s contains.
func rowMaxima(set avx.Set, s *avx.Softmax, x []float32, cols int) {
	if set != avx.None {
		set.Largest(s, x, cols)
		return
	}
	for i, r := range s.Rows[:s.Count] {
		s.Tops[i] = float64(largest(rowOf(x, int(r), cols)))
	}
}

// softmaxRows sets the rows of dst that s contains, unless dst is nil, to scale times the softmax of the rows of x.
func softmaxRows(set avx.Set, s *avx.Softmax, dst, x []float32, cols int, scale float64) {
	if set != avx.None {
		set.Softmax(s, dst, x, cols, scale)
		return
	}
	for i, r := range s.Rows[:s.Count] {
		var to []float32
		if dst != nil {
			to = rowOf(dst, int(r), cols)
		}
		top, sum := softmaxRow(to, rowOf(x, int(r), cols), scale)
		s.Tops[i], s.Logs[i] = float64(top), elementary.Log(sum)
	}
}

// softmaxRow sets dst, unless it is nil, to scale times the softmax of x, and
// returns the largest element and the sum of exp(x-top).
func softmaxRow(dst, x []float32, scale float64) (top float32, sum float64) {
	top = largest(x)
	var sums [4]float64 // of columns j with equal j%4
	for j, v := range x {
		e := exp64(float64(v) - float64(top))
		sums[j%4] += e
		if dst != nil {
			dst[j] = float32(e)
		}
	}
	sum = (sums[0] + sums[2]) + (sums[1] + sums[3])
	inv := scale / sum
	for j, e := range dst {
		dst[j] = float32(float64(e) * inv)
	}
	return top, sum
}

// largest returns the maximum of z without NaNs; -Inf for an empty row.
func largest(z []float32) float32 {
	top := float32(math.Inf(-1))
	for _, v := range z {
		if v > top {
			top = v
		}
	}
	return top
}
