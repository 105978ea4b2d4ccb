package order

import "siafu/graph"

// cacheRows is the number of feature rows in the modelled cache of a core. It is 1.5 MB for
// rows of 128 float32: three quarters of a 2 MB L2 cache. The constant is the same on every
// machine, so that a graph has the same order everywhere.
const cacheRows = 3072

// Misses estimates the fraction of edges whose source row is not in a core's cache when the rows
// of g are gathered in the given order (nil: ascending). The model is a first-in-first-out cache
// of 3072 rows, initially empty. It takes one pass over the edges and one word per vertex.
//
// Design note: one word per vertex suffices because the i-th row to enter leaves when row
// i+3072 enters. Least-recently-used would need a list and gives the same ranking of orders.
func Misses(g graph.CSR, vertices []uint32) float64 {
	n := g.Rows()
	entered := make([]int64, n)
	misses, now := int64(0), int64(cacheRows) // now is the entry number of the newest row
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
