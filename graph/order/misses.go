package order

import "siafu/graph"

// cacheRows is the number of feature rows in the model of a core's cache. Rows of 128 float32 then
// take 1.5 MB: three quarters of an L2 cache of 2 MB. The constant is the same on all machines, so
// that a graph has the same order on all machines.
const cacheRows = 3072

// Misses estimates the fraction of edges that miss the cache of a core: the row of the source is
// not in the cache when the edge is gathered. Vertices gather in the given order, or by ascending id
// if vertices is nil. The model is a first-in-first-out cache of 3072 rows, initially empty. Misses
// makes one pass over the edges and uses one word per vertex.
//
// Design note: in a first-in-first-out cache, the i-th row to enter leaves when row i+3072 enters.
// One word per vertex, the number of its last entry, is therefore sufficient. A least-recently-used
// cache would need a list, and ranks the orders in the same way.
func Misses(g graph.CSR, vertices []uint32) float64 {
	n := g.Rows()
	entered := make([]int64, n)
	misses, now := int64(0), int64(cacheRows) // now is the number of the last entry
	for i := range n {
		v := i
		if vertices != nil {
			v = int(vertices[i])
		}
		for _, u := range g.Row(v) {
			if now-entered[u] >= cacheRows {
				now++
				misses++
				entered[u] = now
			}
		}
	}
	return float64(misses) / max(float64(len(g.Cols)), 1)
}
