package kernels

import (
	"sync"

	"siafu/internal/mapped"
	"siafu/kernels/internal/avx"
)

// VertexMask has a bit for each local id below a bound.
type VertexMask []uint32

// NewVertexMask selects the vertices v < n for which is(v) is true.
func NewVertexMask(n int, is func(v int) bool) VertexMask {
	c := make(VertexMask, (n+31)/32)
	for v := range n {
		if is(v) {
			c[v/32] |= 1 << (v % 32)
		}
	}
	return c
}

// has returns 1 if v is selected, else 0.
func (c VertexMask) has(v uint32) int { return int(c[v/32] >> (v % 32) & 1) }

// EdgeMask has the bits of a VertexMask in the order of the columns of edges, which vector instructions read faster.
type EdgeMask []uint8

// NewEdgeMask selects the columns that v selects, in memory of a. Columns beyond the bound of v are not selected.
func NewEdgeMask(a *mapped.Arena, of Vector[uint32], v VertexMask) EdgeMask {
	cols := of.Host()
	m := mapped.Make[uint8](a, (len(cols)+7)/8+avx.ChooseSlack)
	a.Fill(func() {
		for i, c := range cols {
			if int(c/32) < len(v) {
				m[i/8] |= uint8(v.has(c) << (i % 8))
			}
		}
	})
	return m
}

// keptEdges has memory for the edges that masks keep.
type keptEdges struct {
	begin, end []int64
	cols, hub  []uint32
	weights    []float32
}

// edgesOf returns e without the edges into rows that are not selected. The result is valid
// until the next call.
func (t *Team) edgesOf(e Edges) Gather {
	g := e.gather()
	if e.RowMask != nil {
		ends := scratch(&t.rowEnds, g.Rows())
		for r := range ends {
			ends[r] = g.Begin[r] + (g.End[r]-g.Begin[r])*int64(e.RowMask.has(g.First+uint32(r)))
		}
		g.End = ends
	}
	return g
}

// keptPool has memory for the kept edges of a worker.
var keptPool = sync.Pool{New: func() any { return new(keptEdges) }}

// part returns the task of rows [lo, hi).
func (k *spmmTask) part(lo, hi int) spmmTask {
	p := *k
	p.Begin, p.End, p.First = k.Begin[lo:hi], k.End[lo:hi], k.First+uint32(lo)
	p.CodedFirst = k.CodedFirst + lo
	p.dst = k.dst[lo*k.width : hi*k.width]
	if k.RowScale != nil {
		p.RowScale = k.RowScale[lo:hi]
	}
	return p
}

// maskEdges computes rows [lo, hi) from those edges that lie in the current source block, if there
// is one, and in selected columns. It stores these edges contiguously, so that rows of x are
// prefetched beyond the end of a row. Hubs ignore the column mask, because pieces would start
// elsewhere and the sum's bits would differ.
func (k *spmmTask) maskEdges(to *keptEdges, lo, hi int) {
	edges := 0
	for r := lo; r < hi; r++ {
		edges += len(k.remainingEdges(r))
	}
	part, n := k.part(lo, hi), hi-lo
	part.Begin, part.End, part.Cols = scratch(&to.begin, n), scratch(&to.end, n), scratch(&to.cols, edges+avx.ChooseSlack)
	if k.Weights != nil {
		part.Weights = scratch(&to.weights, edges)
	}
	at := 0
	for r := range n {
		part.Begin[r] = int64(at)
		at += k.maskRow(&part, at, lo+r)
		part.End[r] = int64(at)
	}
	part.Cols = part.Cols[:at]
	part.rows(0, n)
}

// maskRow writes the kept edges of row r, with their weights, to part from at on.
func (k *spmmTask) maskRow(part *spmmTask, at, r int) int {
	cols, buffer := k.remainingEdges(r), part.Cols[at:]
	if k.last != nil {
		cols = k.blockEdges(buffer, r)
	}
	switch {
	case k.Weights != nil: // weighted edges are never masked by column
		return copy(part.Weights[at:], k.Weights[k.Begin[r]:k.End[r]])
	case k.columnMask != nil:
		return k.edgeMask.copy(k.set, buffer, cols, k.Begin[r], k.columnMask)
	}
	return len(cols)
}

// copy writes every column, but advances only after selected ones, which avoids a branch. dst
// may be cols.
func (c VertexMask) copy(set avx.Set, dst, cols []uint32) (n int) {
	if set != avx.None {
		return set.Choose(dst, cols, c)
	}
	for _, col := range cols {
		dst[n] = col
		n += c.has(col)
	}
	return n
}

// copy is that of v, whose bits for cols start at bit first of m, if that is not nil. Up to avx.ChooseSlack elements
// after the copied ones are overwritten.
func (m EdgeMask) copy(set avx.Set, dst, cols []uint32, first int64, v VertexMask) int {
	if m == nil || set == avx.None {
		return v.copy(set, dst[:len(cols)], cols)
	}
	return set.ChooseAt(dst[:len(cols)+avx.ChooseSlack], cols, m, first)
}
