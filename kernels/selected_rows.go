package kernels

import "siafu/kernels/internal/avx"

// Rows of a matrix that are chosen by their numbers, beside one row: what the scores of
// pairs and their gradients are made of.
//
//	dots   dst[i]  = Σ_j row[j]·x[ids[i]][j]
//	add    dst[j] += Σ_i weights[i]·x[ids[i]][j], in order of i
//
// Variant: those of attention's edges with one head. A product depends on its two rows
// alone, and not on which of them is which; sets of instructions differ by the order of a
// row's columns.
//
// They are work of one worker: a body of Run may call them.

// DotsOf sets dst to the products of row and as many rows of x [· x row], which the first
// ids choose. Rows of ids after those are fetched ahead.
func (t *Team) DotsOf(dst, row, x []float32, ids []uint32) {
	mustFit(len(dst) <= len(ids))
	if len(row) == 0 {
		clear(dst)
		return
	}
	setDots(t.set, dst, 1, 1, row, x, len(row), ids, len(dst))
}

// AddChosen adds to dst the chosen rows of x [· x dst], times weights [ids].
func (t *Team) AddChosen(dst, x []float32, ids []uint32, weights []float32) {
	mustFit(len(weights) == len(ids))
	switch {
	case len(dst) == 0:
	case t.set != avx.None:
		t.set.Weigh(dst, x, len(dst), ids, weights, 1, len(ids), nil)
	default:
		for i, id := range ids {
			axpy1(dst, rowOf(x, int(id), len(dst)), weights[i])
		}
	}
}
