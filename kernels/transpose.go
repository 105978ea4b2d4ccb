package kernels

import (
	"siafu/graph"
	"siafu/internal/mapped"
)

// Transposed is the transpose of a Sparse in the memory of an Ops: column c of the original
// has Vals[Offsets[c]:Offsets[c+1]] in the rows Rows[same], ascending. Count is the number of
// rows of the original.
type Transposed struct {
	Offsets Vector[int64]   // columns+1
	Rows    Vector[uint32]  // non-zeros
	Vals    Vector[float32] // non-zeros
	Count   int
	filled  bool // true from the start in a sketch
}

// NewTransposed allocates the transpose of xs, which Fill computes.
func NewTransposed(o Ops, a *mapped.Arena, xs Sparse, cols int) *Transposed {
	t := &Transposed{Offsets: NewVector[int64](o, a, cols+1), Count: xs.Rows(), filled: true}
	if t.Count > 0 {
		n := xs.Cols.Len() // maximum
		a.Fill(func() { t.filled, n = false, int(xs.Source.Offsets[t.Count]-xs.Source.Offsets[0]) })
		t.Rows, t.Vals = NewVector[uint32](o, a, n), NewVector[float32](o, a, n)
	}
	return t
}

// Fill transposes xs, the matrix that t was made for. A second call does
// nothing.
func (t *Transposed) Fill(o Ops, xs Sparse) {
	if t.filled || t.Count == 0 {
		return
	}
	t.filled = true
	if !t.Offsets.Remote() {
		transposeSparse(t.Offsets.Host(), t.Rows.Host(), t.Vals.Host(), xs.Source)
		return
	}
	scratch := mapped.NewArena()
	defer scratch.Free()
	offsets := mapped.Make[int64](scratch, t.Offsets.Len())
	rows, vals := mapped.Make[uint32](scratch, t.Rows.Len()), mapped.Make[float32](scratch, t.Vals.Len())
	transposeSparse(offsets, rows, vals, xs.Source)
	o.Upload(t.Offsets.Address(), mapped.Bytes(offsets))
	o.Upload(t.Rows.Address(), mapped.Bytes(rows))
	o.Upload(t.Vals.Address(), mapped.Bytes(vals))
}

// transposeSparse sets offsets, which are zeros, rows and vals to the transpose
// of xs.
func transposeSparse(offsets []int64, rows []uint32, vals []float32, xs graph.SparseRows) {
	count, cols := sparseRows(xs), len(offsets)-1
	for _, c := range xs.Cols[xs.Offsets[0]:xs.Offsets[count]] {
		offsets[c+1]++
	}
	for c := range cols {
		offsets[c+1] += offsets[c]
	}
	// Filling moves each offset to the end of its column, which is the start
	// of the next; shifting them back by one column restores them.
	for r := range count {
		for e := xs.Offsets[r]; e < xs.Offsets[r+1]; e++ {
			at := &offsets[xs.Cols[e]]
			rows[*at], vals[*at] = uint32(r), xs.Vals[e]
			*at++
		}
	}
	copy(offsets[1:], offsets[:cols])
	offsets[0] = 0
}
