package kernels

import "siafu/kernels/internal/avx"

// Choosing is an Ops that leaves out edges for a call.
type Choosing interface {
	Ops
	// Into is e without the edges into rows that are not chosen, of which no more than the self
	// loops are left; row 0 is the vertex first. It may be read until the next call of Into or From.
	Into(e Edges, c Chosen, first int) Edges
	// From is e without the edges from columns that are not chosen, as long as Into's.
	From(e Edges, c Chosen) Edges
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

// chosenEdges is room for edges that are left: their columns lie where those of all
// edges of a row would, so that rows do not wait for each other.
type chosenEdges struct {
	begin, end []int64
	cols       []uint32
}

// Into implements Choosing.
func (t *Team) Into(e Edges, c Chosen, first int) Edges {
	begin, end := e.Begin.Host(), e.End.Host()
	left := scratch(&t.chosen.end, e.Rows())
	for r := range left {
		left[r] = begin[r] + (end[r]-begin[r])*int64(c.has(uint32(first+r)))
	}
	e.End = HostVector(left)
	return e
}

// From implements Choosing.
func (t *Team) From(e Edges, c Chosen) Edges {
	n := e.Rows()
	if n == 0 {
		return e
	}
	fit(e.Base == 0)
	g, to := e.gather(), &t.chosen
	to.begin, to.end = scratch(&to.begin, n), scratch(&to.end, n)
	to.cols = scratch(&to.cols, int(g.End[n-1]-g.Begin[0]))
	doWeighted(t, &t.slots.choose, chooseTask{g, *to, c, t.set}, g.Begin, g.End[n-1])
	e.Begin, e.End, e.Cols = HostVector(to.begin), HostVector(to.end), HostVector(to.cols)
	return e
}

// chooseTask copies the columns of rows that are chosen.
type chooseTask struct {
	Gather
	to     chosenEdges
	chosen Chosen
	set    avx.Set
}

func (k *chooseTask) chunk(lo, hi int) {
	first := k.Begin[0]
	for r := lo; r < hi; r++ {
		from, to := k.Begin[r]-first, k.End[r]-first
		k.to.begin[r] = from
		k.to.end[r] = from + int64(k.choose(k.to.cols[from:to], k.Cols[k.Begin[r]:k.End[r]]))
	}
}

// choose writes every column and moves on behind those that are chosen, which no branch
// has to foresee.
func (k *chooseTask) choose(dst, cols []uint32) (n int) {
	if k.set != avx.None {
		return k.set.Choose(dst, cols, k.chosen)
	}
	for _, c := range cols {
		dst[n] = c
		n += k.chosen.has(c)
	}
	return n
}
