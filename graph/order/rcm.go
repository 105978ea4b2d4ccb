package order

import (
	"cmp"
	"slices"

	"siafu/graph"
)

// reverseCuthillMcKee returns the reverse Cuthill-McKee order (Cuthill and McKee, ACM 1969; George
// 1971). It traverses each component breadth-first from a vertex of lowest degree, visits neighbours
// by ascending degree, and reverses the result. The levels of the search that two neighbours belong
// to differ by at most one.
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

// visit appends the unseen neighbours of v to p, by ascending degree.
func visit(g graph.CSR, p []uint32, seen []bool, v uint32) []uint32 {
	from := len(p)
	for _, u := range g.Row(int(v)) {
		if !seen[u] {
			seen[u] = true
			p = append(p, u)
		}
	}
	// Rows are ascending and the sort is stable, so the lower id comes first among equal degrees.
	slices.SortStableFunc(p[from:], func(a, b uint32) int {
		return cmp.Compare(len(g.Row(int(a))), len(g.Row(int(b))))
	})
	return p
}
