package multilevel

import (
	"runtime"

	"siafu/internal/workers"
)

// gains stores the connection of each vertex to each part: the total weight of the edges between
// the vertex and the part. Vertex v has min(parts, number of its neighbours) slots. With one slot
// per part, slot p is for part p. With fewer slots, each used slot names its part.
type gains struct {
	parts  int
	start  []int64  // [n+1] vertex v has the slots start[v]:start[v+1]
	part   []uint32 // part of each slot
	weight []uint32 // connection to the part of each slot; 0 if the slot is unused
}

func newGains(g *level, owner []uint32, parts int) *gains {
	n := g.n()
	t := &gains{parts: parts, start: make([]int64, n+1)}
	for v := range n {
		in, _, out := g.links(uint32(v))
		t.start[v+1] = t.start[v] + int64(min(len(in)+len(out), parts))
	}
	t.part, t.weight = make([]uint32, t.start[n]), make([]uint32, t.start[n])
	workers.Blocks(runtime.GOMAXPROCS(0), n, block, func(_, lo, hi int) {
		for v := lo; v < hi; v++ {
			t.fill(g, uint32(v), owner)
		}
	})
	return t
}

// fill computes the slots of v.
func (t *gains) fill(g *level, v uint32, owner []uint32) {
	parts, _ := t.row(v)
	if len(parts) == t.parts {
		for p := range parts {
			parts[p] = uint32(p)
		}
	}
	g.eachNeighbour(v, func(u, w uint32) { t.add(v, owner[u], w) })
}

// row returns the parts and weights of the slots of v.
func (t *gains) row(v uint32) (parts, weights []uint32) {
	lo, hi := t.start[v], t.start[v+1]
	return t.part[lo:hi], t.weight[lo:hi]
}

// slot returns the index of the slot of part p in a row. If p has no slot, it returns a free one,
// or -1 if there is none.
func (t *gains) slot(parts, weights []uint32, p uint32) int {
	if len(parts) == t.parts {
		return int(p)
	}
	free := -1
	for i, q := range parts {
		if weights[i] == 0 {
			free = i
		} else if q == p {
			return i
		}
	}
	return free
}

// add increases the connection of v to part p by w.
func (t *gains) add(v, p, w uint32) {
	parts, weights := t.row(v)
	i := t.slot(parts, weights, p)
	parts[i] = p
	weights[i] += w
}

// shift decreases the connection of v to part from by w, and increases the connection to part to
// by w.
func (t *gains) shift(v, from, to, w uint32) {
	parts, weights := t.row(v)
	weights[t.slot(parts, weights, from)] -= w
	i := t.slot(parts, weights, to)
	parts[i] = to
	weights[i] += w
}

// to returns v's connection to part p.
func (t *gains) connection(v, p uint32) uint32 {
	parts, weights := t.row(v)
	if i := t.slot(parts, weights, p); i >= 0 {
		return weights[i]
	}
	return 0
}
