package kernels

import "math"

// Softmax of rows.
//
//	dst[r][c] = exp(x[r][c]) / Σ_j exp(x[r][j])
//
// Variant: each row's maximum is taken out before exp; exponentials and sums
// in float64.

// Softmax computes the softmax of each row of x [rows x cols] into dst (same
// shape; dst may be x).
func Softmax(t *Team, dst []float32, rows, cols int, x []float32) {
	checkMatrix(dst, rows, cols, shortDst)
	checkMatrix(x, rows, cols, shortInput)
	if cols == 0 {
		return
	}
	do(t, &t.slots.softmax, softmaxTask{dst, x, cols}, rows, rowGrain(cols))
}

type softmaxTask struct {
	dst, x []float32
	cols   int
}

func (k *softmaxTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		softmaxRow(rowOf(k.dst, r, k.cols), rowOf(k.x, r, k.cols))
	}
}

func softmaxRow(dst, x []float32) {
	top := float64(largest(x))
	var sum float64
	for j, v := range x {
		e := math.Exp(float64(v) - top)
		sum += e
		dst[j] = float32(e)
	}
	inv := 1 / sum
	for j, e := range dst {
		dst[j] = float32(float64(e) * inv)
	}
}
