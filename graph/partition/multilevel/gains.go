package multilevel

import (
	"runtime"

	"siafu/internal/workers"
)

// gains has the connection of each vertex to each part: the total weight of its edges to the
// part. A row has a slot per part, in order, or, if these are fewer, one per neighbour,
// labelled with the part.
type gains struct {
	parts  int
	start  []int64  // of rows
	part   []uint32 // of slots
	weight []uint32 // of slots; 0 if unused
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

func (t *gains) fill(g *level, v uint32, owner []uint32) {
	parts, _ := t.row(v)
	if len(parts) == t.parts {
		for p := range parts {
			parts[p] = uint32(p)
		}
	}
	g.each(v, func(u, w uint32) { t.add(v, owner[u], w) })
}

// row returns the slots of v.
func (t *gains) row(v uint32) (parts, weights []uint32) {
	lo, hi := t.start[v], t.start[v+1]
	return t.part[lo:hi], t.weight[lo:hi]
}

// slot returns the used or free slot of part p in row, or -1 without room.
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

// add increases v's connection to part p.
func (t *gains) add(v, p, w uint32) {
	parts, weights := t.row(v)
	i := t.slot(parts, weights, p)
	parts[i] = p
	weights[i] += w
}

// shift moves some of v's connection to another part.
func (t *gains) shift(v, from, to, w uint32) {
	parts, weights := t.row(v)
	weights[t.slot(parts, weights, from)] -= w
	i := t.slot(parts, weights, to)
	parts[i] = to
	weights[i] += w
}

// to returns v's connection to part p.
func (t *gains) to(v, p uint32) uint32 {
	parts, weights := t.row(v)
	if i := t.slot(parts, weights, p); i >= 0 {
		return weights[i]
	}
	return 0
}
