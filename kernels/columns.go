package kernels

// Columns of a feature matrix, one block after another.

// CopyColumns implements Ops.
func (t *Team) CopyColumns(dst, x Mat, from int) {
	fit(dst.Rows == x.Rows && from >= 0 && from+dst.Cols <= x.Cols)
	to, all := dst.Host(), x.Host()
	t.Run(dst.Rows, rowGrain(dst.Cols), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			copy(rowOf(to, r, dst.Cols), all[r*x.Cols+from:])
		}
	})
}

// PutColumns implements Ops.
func (t *Team) PutColumns(dst Mat, from int, x Mat) {
	fit(dst.Rows == x.Rows && from >= 0 && from+x.Cols <= dst.Cols)
	if dst.half {
		if half := dst.HostHalf(0); len(half) > 0 {
			narrowRows(t, half[from:], dst.Cols, x, nil)
		}
		return
	}
	all, block := dst.Host(), x.Host()
	t.Run(dst.Rows, rowGrain(x.Cols), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			copy(all[r*dst.Cols+from:], rowOf(block, r, x.Cols))
		}
	})
}

// SpreadColumns implements Ops.
func (t *Team) SpreadColumns(dst Mat, from int, sparse Sparse) {
	fit(dst.Rows == sparse.Rows())
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
