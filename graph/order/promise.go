package order

import (
	"container/heap"

	"siafu/graph"
)

const (
	// costly is the number of edges from which on auto looks at samples first: below
	// it the orders are made within seconds.
	costly = 1 << 26
	// sampleSeeds neighbourhoods of sampleEdges edges are grown: enough to fill the
	// cache of the estimate many times over.
	sampleSeeds = 8
	sampleEdges = 64 * cacheRows
	// hope is the most that samples may leave of the misses: an order of all vertices
	// reaches less than neighbourhoods do that are grown one by one. The synthetic graph of
	// Reddit-large promises 0.89, and lp and rabbit leave all of its misses.
	hope = 0.8
)

// Promising reports whether auto tries to find an order for g, which takes minutes and up
// to 8 bytes an edge where edges are many. Then it grows neighbourhoods round sample
// vertices, always by the vertex that has the largest part of its edges into what is
// there. Where gathering those misses the cache nearly as often as gathering as many
// edges in the order that is there, few vertices have common neighbours, and no order
// brings them together.
func Promising(g graph.CSR) bool {
	if g.Rows() <= cacheRows {
		return false
	}
	return len(g.Cols) < costly || promise(g, sampleEdges) < hope
}

// promise returns the misses of grown neighbourhoods of N edges, divided by those of
// runs of vertices as they are numbered, from the same vertices on.
func promise(g graph.CSR, edges int) float64 {
	var grown, natural float64
	n := g.Rows()
	for i := range sampleSeeds {
		seed := i * (n / sampleSeeds)
		grown += share(g, grow(g, uint32(seed), edges))
		natural += share(g, along(g, seed, edges))
	}
	return grown / max(natural, 1e-9)
}

// share returns the fraction of misses among the edges of some rows.
func share(g graph.CSR, vertices []uint32) float64 {
	entered := make(map[uint32]int64, sampleEdges)
	misses, now, edges := 0, int64(cacheRows), 0
	for _, v := range vertices {
		for _, u := range g.Row(int(v)) {
			edges++
			if now-entered[u] >= cacheRows {
				now++
				misses++
				entered[u] = now
			}
		}
	}
	return float64(misses) / max(float64(edges), 1)
}

// along is vertices from first on, round the end, with at least N edges.
func along(g graph.CSR, first, edges int) []uint32 {
	var out []uint32
	for i := range g.Rows() {
		v := (first + i) % g.Rows()
		if out = append(out, uint32(v)); edges <= len(g.Row(v)) {
			break
		}
		edges -= len(g.Row(v))
	}
	return out
}

// grow returns a neighbourhood with at least N edges, or all that seed is joined to,
// in the order in which it grew.
func grow(g graph.CSR, seed uint32, edges int) []uint32 {
	var out []uint32
	links := map[uint32]int{} // into the neighbourhood, of those outside; -1 inside
	front := &frontier{{seed, 0}}
	for front.Len() > 0 && edges > 0 {
		v := heap.Pop(front).(candidate).vertex
		if links[v] < 0 {
			continue // it came with fewer links before
		}
		links[v] = -1
		out = append(out, v)
		row := g.Row(int(v))
		edges -= len(row)
		for _, u := range row {
			if links[u] >= 0 {
				links[u]++
				heap.Push(front, candidate{u, float64(links[u]) / float64(max(len(g.Row(int(u))), 1))})
			}
		}
	}
	return out
}

// candidate is a vertex with the part of its edges that lead into the neighbourhood.
type candidate struct {
	vertex uint32
	part   float64
}

// frontier is a heap of candidates, the largest part first.
type frontier []candidate

func (f frontier) Len() int { return len(f) }
func (f frontier) Less(i, j int) bool {
	return f[i].part > f[j].part || f[i].part == f[j].part && f[i].vertex < f[j].vertex
}
func (f frontier) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)   { *f = append(*f, x.(candidate)) }
func (f *frontier) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}
