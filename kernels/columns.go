package kernels

import "siafu/graph"

// Columns of a feature matrix, one block after another.

// CopyColumns copies columns [from, to) of x [rows x cols] to dst [rows x
// to-from].
func CopyColumns(t *Team, dst []float32, rows, from, to, cols int, x []float32) {
	checkMatrix(dst, rows, to-from, shortDst)
	checkMatrix(x, rows, cols, shortInput)
	t.Run(rows, rowGrain(to-from), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			copy(rowOf(dst, r, to-from), x[r*cols+from:])
		}
	})
}

// PutColumns copies x [rows x to-from] to columns [from, to) of dst [rows x
// cols].
func PutColumns(t *Team, dst []float32, rows, from, to, cols int, x []float32) {
	checkMatrix(dst, rows, cols, shortDst)
	checkMatrix(x, rows, to-from, shortInput)
	t.Run(rows, rowGrain(to-from), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			copy(dst[r*cols+from:], rowOf(x, r, to-from))
		}
	})
}

// SpreadColumns writes columns [from, to) of the sparse matrix xs with their
// zeros to dst [rows x to-from].
func SpreadColumns(t *Team, dst []float32, from, to int, xs graph.SparseRows) {
	rows := sparseRows(xs)
	checkMatrix(dst, rows, to-from, shortDst)
	t.Run(rows, rowGrain(to-from), func(lo, hi int) {
		for r := lo; r < hi; r++ {
			row := rowOf(dst, r, to-from)
			clear(row)
			for e := xs.Offsets[r]; e < xs.Offsets[r+1]; e++ {
				if c := int(xs.Cols[e]); c >= from && c < to {
					row[c-from] = xs.Vals[e]
				}
			}
		}
	})
}
