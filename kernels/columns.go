package kernels

import "siafu/kernels/internal/avx"

// Blocks of columns of a feature matrix.

// CopyColumns implements Ops.
func (t *Team) CopyColumns(dst, x Mat, from int) {
	mustFit(dst.Rows == x.Rows && from >= 0 && from+dst.Cols <= x.Cols)
	switch {
	case dst.Rows == 0 || dst.Cols == 0:
	case x.half:
		do(t, widenTask{dst.Host(), bitsOf(x.HostHalf(0))[from:], dst.Cols, x.Cols, t.set}, dst.Rows, rowGrain(dst.Cols))
	default:
		do(t, blockTask{dst.Host(), x.Host()[from:], dst.Cols, x.Cols, dst.Cols}, dst.Rows, rowGrain(dst.Cols))
	}
}

// PutColumns implements Ops.
func (t *Team) PutColumns(dst Mat, from int, x Mat) {
	mustFit(dst.Rows == x.Rows && from >= 0 && from+x.Cols <= dst.Cols)
	if dst.half {
		if half := dst.HostHalf(0); len(half) > 0 {
			narrowRows(t, half[from:], dst.Cols, x, nil)
		}
		return
	}
	if x.Rows > 0 && x.Cols > 0 {
		do(t, blockTask{dst.Host()[from:], x.Host(), dst.Cols, x.Cols, x.Cols}, x.Rows, rowGrain(x.Cols))
	}
}

// blockTask copies N columns, of rows that are N elements apart.
type blockTask struct {
	dst, x             []float32
	dstStride, xStride int
	cols               int
}

func (k *blockTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		copy(k.dst[r*k.dstStride:][:k.cols], k.x[r*k.xStride:])
	}
}

// widenTask is blockTask for columns of a bfloat16 matrix.
type widenTask struct {
	dst        []float32
	x          []uint16
	cols, step int // step: elements between two rows of x
	set        avx.Set
}

func (k *widenTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		widenRow(k.set, rowOf(k.dst, r, k.cols), k.x[r*k.step:][:k.cols], false)
	}
}

// SpreadColumns implements Ops.
func (t *Team) SpreadColumns(dst Mat, from int, sparse Sparse) {
	mustFit(dst.Rows == sparse.Rows())
	to, xs := dst.Host(), sparse.rows()
	t.Run(dst.Rows, rowGrain(dst.Cols), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row := rowOf(to, r, dst.Cols)
			clear(row)
			for e := xs.Offsets[r]; e < xs.Offsets[r+1]; e++ {
				if c := int(xs.Cols[e]); c >= from && c < from+dst.Cols {
					row[c-from] = xs.Vals[e]
				}
			}
		}
	})
}
