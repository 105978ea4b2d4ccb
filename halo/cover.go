package halo

// bipartite is a graph with edges from some sources to some destinations: the edges of source u go to
// Cols[Offsets[u]:Offsets[u+1]], each below Dests.
type bipartite struct {
	Dests   int
	Offsets []int64 // [sources+1], from anywhere on
	Cols    []uint32
}

// Sources returns the number of sources.
func (b *bipartite) Sources() int { return len(b.Offsets) - 1 }

// vertexCover is a set of vertices that touches every edge of a bipartite graph.
type vertexCover struct {
	Sources, Dests []bool // whether each is in it
	Size           int
	Least          int // no cover is smaller: a matching has this many edges
}

// findCover returns a cover. With no bound on phases (0) it is a minimum, and of all
// minima one with the most sources, made from a maximum matching (Hopcroft and
// Karp, SIAM J. Comput. 2, 1973) by König's theorem; a phase takes time
// proportional to the edges, and there are rarely more than ten. After k
// phases, the shortest path that would lengthen the matching M has more than k
// sources; the alternating paths from free sources then pass k disjoint sets of
// matched destinations, and to end König's construction at the smallest costs
// at most |M|/k: a cover is at most 1+1/k times the minimum. It never has more
// vertices than there are sources or destinations with edges.
//
// Covers of more than most vertices are of no use to the caller: where there is
// no other, the search ends early with all sources.
func findCover(b bipartite, phases, most int) vertexCover {
	m := newMatcher(b)
	for done := 0; m.findLevels() && (phases == 0 || done < phases); done++ {
		m.lengthen()
		if m.matched() > most {
			return m.all()
		}
	}
	return m.cover()
}

// all returns the cover of all sources.
func (m *matcher) all() vertexCover {
	for u := range m.level {
		m.level[u] = none
	}
	return m.behind(-1)
}

// cover returns König's cover: sources that no path from a free source reaches, and
// destinations that one reaches. Paths end at the layer with the least cost.
func (m *matcher) cover() vertexCover {
	depth, size := m.cut()
	touched, dests := m.ends()
	switch {
	case dests < min(size, touched):
		depth = len(m.source) // all destinations: as if paths reached all sources
		for u := range m.level {
			m.level[u] = 0
		}
	case touched < size:
		depth = -1
	}
	return m.behind(depth)
}

// behind returns the cover if paths end at sources of the given depth.
func (m *matcher) behind(depth int) vertexCover {
	c := vertexCover{Sources: make([]bool, len(m.source)), Dests: make([]bool, m.Dests), Least: m.matched()}
	for u, level := range m.level {
		within := level >= 0 && int(level) <= depth
		c.Sources[u] = !within && m.Offsets[u] < m.Offsets[u+1]
		if within {
			for _, d := range m.Cols[m.Offsets[u]:m.Offsets[u+1]] {
				c.Dests[d] = true
			}
		}
	}
	c.Size = countTrue(c.Sources) + countTrue(c.Dests)
	return c
}

// cut returns the layer of sources after which paths end, and the size of the resulting cover:
// one per edge of the matching, and one per source of the next level.
func (m *matcher) cut() (depth, size int) {
	if !m.free {
		return m.last, m.matched()
	}
	sizes := make([]int, m.last+1)
	for _, level := range m.level {
		if level >= 0 && int(level) <= m.last {
			sizes[level]++
		}
	}
	depth = -1
	for j := 1; j <= m.last; j++ {
		if depth < 0 || sizes[j] < sizes[depth+1] {
			depth = j - 1
		}
	}
	if depth < 0 {
		return -1, len(m.source) // no phase is allowed
	}
	return depth, m.matched() + sizes[depth+1]
}

// ends counts the sources and the destinations with edges.
func (m *matcher) ends() (sources, dests int) {
	seen := make([]bool, m.Dests)
	for u := range m.source {
		edges := m.Cols[m.Offsets[u]:m.Offsets[u+1]]
		if len(edges) > 0 {
			sources++
		}
		for _, d := range edges {
			seen[d] = true
		}
	}
	return sources, countTrue(seen)
}

func countTrue(set []bool) (n int) {
	for _, in := range set {
		if in {
			n++
		}
	}
	return n
}
