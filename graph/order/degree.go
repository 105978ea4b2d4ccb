package order

import "siafu/graph"

// byDegree is the vertices by descending or ascending in-degree, of equals by
// id: a counting sort. Hubs side by side share pages, and their rows don't
// compete for a few sets of the cache as regular ids do.
func byDegree(g graph.CSR, descending bool) []uint32 {
	n, largest := g.Rows(), 0
	for v := range n {
		largest = max(largest, len(g.Row(v)))
	}
	key := func(v int) int {
		if descending {
			return largest - len(g.Row(v))
		}
		return len(g.Row(v))
	}
	next := make([]int, largest+2)
	for v := range n {
		next[key(v)+1]++
	}
	for k := range largest {
		next[k+1] += next[k]
	}
	p := make([]uint32, n)
	for v := range n {
		k := key(v)
		p[next[k]] = uint32(v)
		next[k]++
	}
	return p
}
