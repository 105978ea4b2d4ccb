package order

import "siafu/graph"

// byDegree returns the vertices by ascending in-degree, and by ascending id among equal in-degrees
// (counting sort).
func byDegree(g graph.CSR) []uint32 {
	n, largest := g.Rows(), 0
	for v := range n {
		largest = max(largest, len(g.Row(v)))
	}
	next := make([]int, largest+2)
	for v := range n {
		next[len(g.Row(v))+1]++
	}
	for d := range largest {
		next[d+1] += next[d]
	}
	p := make([]uint32, n)
	for v := range n {
		d := len(g.Row(v))
		p[next[d]] = uint32(v)
		next[d]++
	}
	return p
}
