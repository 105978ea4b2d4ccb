package kernels

import (
	"sync"

	"siafu/kernels/internal/avx"
)

// Choosing is an Ops that leaves out edges for a call, those of Edges.Chosen too.
type Choosing interface {
	Ops
	// Into is e without the edges into rows that are not chosen, of which no more than the self
	// loops are left; row 0 is the vertex first. It may be read until the next call of Into.
	Into(e Edges, c Chosen, first int) Edges
}

// Chosen are some of the vertices with local ids below a bound: a bit for each.
type Chosen []uint32

// NewChosen are the vertices v < n of which is tells so.
func NewChosen(n int, is func(v int) bool) Chosen {
	c := make(Chosen, (n+31)/32)
	for v := range n {
		if is(v) {
			c[v/32] |= 1 << (v % 32)
		}
	}
	return c
}

// has is 1 where v is chosen, else 0.
func (c Chosen) has(v uint32) int { return int(c[v/32] >> (v % 32) & 1) }

// chosenEdges is room for edges that are left.
type chosenEdges struct {
	begin, end []int64
	cols       []uint32
}

// Into implements Choosing.
func (t *Team) Into(e Edges, c Chosen, first int) Edges {
	begin, end := e.Begin.Host(), e.End.Host()
	left := scratch(&t.into, e.Rows())
	for r := range left {
		left[r] = begin[r] + (end[r]-begin[r])*int64(c.has(uint32(first+r)))
	}
	e.End = HostVector(left)
	return e
}

// choose writes every column and moves on behind those that are chosen, which no branch
// has to foresee.
func choose(set avx.Set, c Chosen, dst, cols []uint32) (n int) {
	if set != avx.None {
		return set.Choose(dst, cols, c)
	}
	for _, col := range cols {
		dst[n] = col
		n += c.has(col)
	}
	return n
}

// leftEdges is room for the edges that a worker has left.
var leftEdges = sync.Pool{New: func() any { return new(chosenEdges) }}

// chooseRows is unchosen along the edges from chosen columns. Of hubs, for which what is
// left would be cut into other pieces, all edges are taken.
func (k *spmmTask) chooseRows(lo, hi int) {
	room := leftEdges.Get().(*chosenEdges)
	defer leftEdges.Put(room)
	for from := lo; from < hi; from++ {
		to := from
		for to < hi && k.End[to]-k.Begin[to] <= hubEdges {
			to++
		}
		if from < to {
			k.left(room, from, to)
		}
		if to < hi {
			k.hubs.leave(to)
		}
		from = to
	}
}

// left computes the rows [lo, hi) along what is left of their edges.
func (k *spmmTask) left(room *chosenEdges, lo, hi int) {
	edges := 0
	for r := lo; r < hi; r++ {
		edges += int(k.End[r] - k.Begin[r])
	}
	part, n := *k, hi-lo
	part.Begin, part.End, part.Cols = scratch(&room.begin, n), scratch(&room.end, n), scratch(&room.cols, edges)
	at := 0
	for r := range n {
		cols := k.Cols[k.Begin[lo+r]:k.End[lo+r]]
		part.Begin[r] = int64(at)
		at += choose(k.set, k.chosen, part.Cols[at:at+len(cols)], cols)
		part.End[r] = int64(at)
	}
	part.dst, part.First = k.dst[lo*k.width:hi*k.width], k.First+uint32(lo)
	if k.RowScale != nil {
		part.RowScale = k.RowScale[lo:hi]
	}
	part.rows(0, n)
}
