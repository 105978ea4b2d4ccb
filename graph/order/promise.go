package order

import (
	"container/heap"

	"siafu/graph"
)

const (
	// costly is the number of edges from which auto examines samples first. With fewer edges
	// the orders take only seconds.
	costly = 1 << 26
	// sampleSeeds neighbourhoods of sampleEdges edges are sampled, enough to fill the modelled
	// cache many times.
	sampleSeeds = 8
	sampleEdges = 64 * cacheRows
	// maxSampleRatio is the maximum ratio of misses in samples. An order of all vertices gains less than
	// neighbourhoods that are grown one by one. The synthetic graph of Reddit-large has ratio
	// 0.89, and lp and rabbit do not reduce its misses.
	maxSampleRatio = 0.8
)

// Promising reports whether auto computes orders for g. For a graph with many edges they take
// minutes and up to 8 bytes per edge, so Promising first grows neighbourhoods around sample
// vertices. Each step adds the vertex with the largest fraction of its edges into the
// neighbourhood. Promising compares their misses with the misses of the same number of edges in
// natural order. If the misses are nearly equal, few vertices have common neighbours, and no
// order helps.
func Promising(g graph.CSR) bool {
	if g.Rows() <= cacheRows {
		return false
	}
	return len(g.Cols) < costly || promise(g, sampleEdges) < maxSampleRatio
}

// promise returns the misses of neighbourhoods with N edges, divided by the misses of natural
// sequences of vertices from the same seeds.
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

// share returns the fraction of misses among the edges of the given rows.
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

// along returns vertices from first on, with wrap-around, until they have at least N edges.
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

// grow returns a neighbourhood of seed with at least N edges, or the whole component of seed,
// in the order of growth.
func grow(g graph.CSR, seed uint32, edges int) []uint32 {
	var out []uint32
	links := map[uint32]int{} // edges from each outside vertex into the neighbourhood; -1 for vertices inside
	front := &frontier{{seed, 0}}
	for front.Len() > 0 && edges > 0 {
		v := heap.Pop(front).(candidate).vertex
		if links[v] < 0 {
			continue // an outdated entry with fewer links
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

// candidate is a vertex with the fraction of its edges that lead into the neighbourhood.
type candidate struct {
	vertex uint32
	part   float64
}

// frontier is a heap of candidates, largest fraction first.
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
