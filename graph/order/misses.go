package order

import "siafu/graph"

// cacheRows is the number of feature rows that the estimate takes a core to
// keep: 1.5 MB in rows of 128 float32, three quarters of a second-level cache
// of 2 MB. It is the same on every machine, so that the same graph is ordered
// alike on all.
const cacheRows = 3072

// Misses estimates the fraction of edges whose source row is not in a core's
// cache when the rows of g are gathered one after another in the given order
// (nil: as they are numbered): a first-in-first-out cache of 3072 rows, which
// begins empty. It takes a pass over the edges and a word a vertex.
//
// Design note: one word a vertex is enough because a row that entered i-th
// leaves when the (i+3072)-th enters. Least-recently-used would need a list;
// both rank orders alike.
func Misses(g graph.CSR, vertices []uint32) float64 {
	n := g.Rows()
	entered := make([]int64, n)
	misses, now := int64(0), int64(cacheRows) // now is the entrance of the newest row
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
