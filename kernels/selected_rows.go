package kernels

import (
	"siafu/kernels/internal/avx"
)

// Operations on one row and selected rows of a matrix, for the scores of pairs and their
// gradients.
//
//	dots   dst[i]  = Σ_j row[j]·x[ids[i]][j]
//	add    dst[j] += Σ_i weights[i]·x[ids[i]][j], in order of i
//
// Variant: the routines of attention edges with one head. A product depends only on its two
// rows, in either order.
//
// They use one worker: a body of Run may call them.

// DotsOf sets dst to the products of row and the rows of x [· x row] that the first len(dst)
// ids select. Rows of later ids are prefetched.
func (t *Team) DotsOf(dst, row, x []float32, ids []uint32) {
	mustFit(len(dst) <= len(ids))
	if len(row) == 0 {
		clear(dst)
		return
	}
	setDots(t.set, dst, 1, 1, row, x, len(row), ids, len(dst))
}

// AddChosen adds to dst the selected rows of x [· x dst], times weights [ids].
func (t *Team) AddChosen(dst, x []float32, ids []uint32, weights []float32) {
	mustFit(len(weights) == len(ids))
	switch {
	case len(dst) == 0:
	case t.set != avx.None:
		t.set.Weigh(dst, nil, x, len(dst), ids, weights, 1, len(ids), nil)
	default:
		for i, id := range ids {
			avx.AddScaled(dst, rowOf(x, int(id), len(dst)), weights[i])
		}
	}
}
