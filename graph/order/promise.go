package order

import (
	"container/heap"

	"siafu/graph"
)

const (
	// manyEdges is the number of edges from which auto examines samples first. For graphs with fewer
	// edges, computing the orders takes only seconds.
	manyEdges = 1 << 26
	// sampleSeeds neighbourhoods of sampleEdges edges each are sampled. This number of edges
	// fills the modelled cache many times.
	sampleSeeds = 8
	sampleEdges = 64 * cacheRows
	// maxSampleRatio is the ratio of misses in samples from which auto keeps the natural order. An
	// order of all vertices saves fewer misses than neighbourhoods that are grown separately. The
	// synthetic graph of Reddit-large has ratio 0.89, and lp and rabbit do not reduce its misses.
	maxSampleRatio = 0.8
)

// Promising reports whether auto computes orders for g. For a graph with many edges, orders take
// minutes and up to 8 bytes per edge. Promising therefore first grows neighbourhoods around sample
// vertices. Each step adds the vertex with the largest fraction of edges to the neighbourhood.
// Promising compares the misses of these neighbourhoods with the misses of the same number of edges
// in natural order. If they are nearly equal, few vertices have common neighbours, and no order
// reduces the misses.
func Promising(g graph.CSR) bool {
	if g.Rows() <= cacheRows {
		return false
	}
	return len(g.Cols) < manyEdges || sampleMissRatio(g, sampleEdges) < maxSampleRatio
}

// sampleMissRatio returns the misses of neighbourhoods with the given number of edges, divided by
// the misses of vertices in natural order from the same seeds.
func sampleMissRatio(g graph.CSR, edges int) float64 {
	var grown, natural float64
	n := g.Rows()
	for i := range sampleSeeds {
		seed := i * (n / sampleSeeds)
		grown += missFraction(g, grow(g, uint32(seed), edges))
		natural += missFraction(g, naturalRun(g, seed, edges))
	}
	return grown / max(natural, 1e-9)
}

// missFraction returns Misses of the given rows only.
func missFraction(g graph.CSR, vertices []uint32) float64 {
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

// naturalRun returns consecutive vertices from first on until they have at least the given number of
// edges. It continues with vertex 0 after the last vertex.
func naturalRun(g graph.CSR, first, edges int) []uint32 {
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

// grow returns a neighbourhood of seed with at least the given number of edges, in the order of
// growth. If the component of seed has fewer edges, it returns the whole component.
func grow(g graph.CSR, seed uint32, edges int) []uint32 {
	var out []uint32
	links := map[uint32]int{} // edges of each outside vertex to the neighbourhood; -1 for inside vertices
	front := &frontier{{seed, 0}}
	for front.Len() > 0 && edges > 0 {
		v := heap.Pop(front).(candidate).vertex
		if links[v] < 0 {
			continue // an outdated entry of a vertex that is inside already
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

// frontier is a heap of candidates. The first one has the largest fraction.
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
