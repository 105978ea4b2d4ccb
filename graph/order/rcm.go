package order

import (
	"cmp"
	"slices"

	"siafu/graph"
)

// reverseCuthillMcKee visits each component breadth-first from a vertex of lowest degree, with
// neighbours by ascending degree, and reverses the result (Cuthill and McKee, ACM 1969; George
// 1971). Neighbours are then within two levels of the search.
func reverseCuthillMcKee(g graph.CSR) []uint32 {
	seen := make([]bool, g.Rows())
	p := make([]uint32, 0, g.Rows())
	for _, start := range byDegree(g) {
		if seen[start] {
			continue
		}
		seen[start] = true
		p = append(p, start)
		for at := len(p) - 1; at < len(p); at++ {
			p = visit(g, p, seen, p[at])
		}
	}
	slices.Reverse(p)
	return p
}

// visit appends the unseen neighbours of v, by ascending degree.
func visit(g graph.CSR, p []uint32, seen []bool, v uint32) []uint32 {
	from := len(p)
	for _, u := range g.Row(int(v)) {
		if !seen[u] {
			seen[u] = true
			p = append(p, u)
		}
	}
	// Rows ascend and the sort is stable: of equal degrees the lower id is first.
	slices.SortStableFunc(p[from:], func(a, b uint32) int {
		return cmp.Compare(len(g.Row(int(a))), len(g.Row(int(b))))
	})
	return p
}
