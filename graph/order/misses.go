package order

import (
	"siafu/graph"
	"siafu/internal/mapped"
)

// cacheRows is the number of feature rows in the model of a core's cache. Rows of 128 float32 then
// take 1.5 MB: three quarters of an L2 cache of 2 MB. The constant is the same on all machines, so
// that a graph has the same order on all machines.
const cacheRows = 3072

// A graph of at least sampledGraph edges is sampled: the edges of stretches ranges of consecutive
// rows, about stretchEdges each. On larger graphs the words of all vertices are far larger than a
// cache, and an edge takes 40 ns.
const (
	sampledGraph = 1 << 28
	stretches    = 64
	stretchEdges = 1 << 20
)

// Misses estimates the fraction of edges that miss the cache of a core: the row of the source is
// not in the cache when the edge is gathered. Vertices gather in the given order, or by ascending id
// if vertices is nil. The model is a first-in-first-out cache of 3072 rows, initially empty. Misses
// makes one pass over the edges, of which it samples 64 Mi if there are 256 Mi or more. It uses 4
// bytes per vertex.
//
// Design note: in a first-in-first-out cache, the i-th row to enter leaves when row i+3072 enters.
// One word per vertex, the number of its last entry, is therefore sufficient. A least-recently-used
// cache would need a list, and ranks the orders in the same way.
func Misses(g graph.CSR, vertices []uint32) float64 {
	if len(g.Cols) < sampledGraph {
		return sampledMisses(g, vertices, 1, len(g.Cols))
	}
	return sampledMisses(g, vertices, stretches, stretchEdges)
}

// sampledMisses is Misses of the first rows of equal parts of the edges. Rows are added to a sample
// until it has at least the given number of edges.
func sampledMisses(g graph.CSR, vertices []uint32, parts, edges int) float64 {
	a := mapped.NewArena()
	defer a.Free()
	entered := mapped.Make[uint32](a, g.Rows())
	misses, now := 0, uint32(cacheRows) // now is the number of the last entry
	before, sampled := 0, 0             // edges of the rows before v
	part := max((len(g.Cols)+parts-1)/parts, 1)
	for i := range g.Rows() {
		v := i
		if vertices != nil {
			v = int(vertices[i])
		}
		row := g.Row(v)
		if before%part < edges {
			sampled += len(row)
			for _, u := range row {
				if now-entered[u] >= cacheRows {
					now++
					misses++
					entered[u] = now
				}
			}
		}
		before += len(row)
	}
	return float64(misses) / max(float64(sampled), 1)
}
