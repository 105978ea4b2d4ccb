package kernels

import (
	"siafu/graph"
	"siafu/graph/mapped"
)

// SparseTransposed is the transpose of a graph.SparseRows: column c of the
// original holds Vals[Offsets[c]:Offsets[c+1]] in the rows Rows[same],
// ascending.
type SparseTransposed struct {
	Offsets []int64  // columns+1
	Rows    []uint32 // non-zeros
	Vals    []float32
	count   int // rows of the original
	filled  bool
}

// TransposeSparse transposes xs, which has the given number of columns. It
// takes 8 bytes a non-zero and 8 a column of the arena and lives as long.
func TransposeSparse(xs graph.SparseRows, cols int, a *mapped.Arena) *SparseTransposed {
	x := NewSparseTransposed(xs, cols, a)
	x.Fill(xs)
	return x
}

// NewSparseTransposed is the room for a transpose of xs, which Fill fills.
func NewSparseTransposed(xs graph.SparseRows, cols int, a *mapped.Arena) *SparseTransposed {
	rows := sparseRows(xs)
	x := &SparseTransposed{Offsets: mapped.Make[int64](a, cols+1), count: rows}
	if rows > 0 {
		n := int(xs.Offsets[rows] - xs.Offsets[0])
		x.Rows, x.Vals = mapped.Make[uint32](a, n), mapped.Make[float32](a, n)
	}
	return x
}

// Fill transposes xs, the matrix that x was made for. A second call does
// nothing.
func (x *SparseTransposed) Fill(xs graph.SparseRows) {
	rows, cols := x.count, len(x.Offsets)-1
	if x.filled || rows == 0 {
		return
	}
	x.filled = true
	for _, c := range xs.Cols[xs.Offsets[0]:xs.Offsets[rows]] {
		x.Offsets[c+1]++
	}
	for c := range cols {
		x.Offsets[c+1] += x.Offsets[c]
	}
	// Filling moves each offset to the end of its column, which is the start
	// of the next; shifting them back by one column restores them.
	for r := range rows {
		for e := xs.Offsets[r]; e < xs.Offsets[r+1]; e++ {
			at := &x.Offsets[xs.Cols[e]]
			x.Rows[*at], x.Vals[*at] = uint32(r), xs.Vals[e]
			*at++
		}
	}
	copy(x.Offsets[1:], x.Offsets[:cols])
	x.Offsets[0] = 0
}
