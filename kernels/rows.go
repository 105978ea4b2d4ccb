package kernels

import "siafu/kernels/internal/avx"

// Sent rows, and received rows that are added.
//
//	pack   dst[i] = X[index[i]]      X being x and after its last row more
//	add    X[index[i]] += rows[i]
//
// Variant: one pass over the rows packed; indices are distinct, so that rows are added in
// parallel.

// rowsGrain is the number of rows that a worker copies at a time.
const rowsGrain = 256

// PackRows implements Ops.
func (t *Team) PackRows(dst Mat, index Vector[uint32], x, more Mat) {
	mustFit(dst.Rows == index.Len() && dst.Cols == x.Cols)
	do(t, rowsTask{dst.Host(), index.Host(), x.Host(), more.Host(), dst.Cols, t.set, false}, dst.Rows, rowsGrain)
}

// AddRows implements Ops.
func (t *Team) AddRows(dst, more Mat, index Vector[uint32], rows Mat) {
	mustFit(rows.Rows == index.Len() && rows.Cols == dst.Cols)
	do(t, rowsTask{rows.Host(), index.Host(), dst.Host(), more.Host(), dst.Cols, t.set, true}, rows.Rows, rowsGrain)
}

type rowsTask struct {
	packed  []float32
	index   []uint32
	x, more []float32
	cols    int
	set     avx.Set
	add     bool
}

func (k *rowsTask) chunk(lo, hi int) {
	for i := lo; i < hi; i++ {
		x, at := k.x, int(k.index[i])*k.cols
		if at >= len(x) {
			x, at = k.more, at-len(x)
		}
		if k.add {
			addRow(k.set, x[at:at+k.cols], rowOf(k.packed, i, k.cols))
		} else {
			copy(rowOf(k.packed, i, k.cols), x[at:at+k.cols])
		}
	}
}
