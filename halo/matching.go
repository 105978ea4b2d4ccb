package halo

// none means no vertex.
const none = -1

// matcher computes a matching: a set of edges that share no end. It grows the matching by
// Hopcroft–Karp: augmenting paths lead from a free source to a free destination, and their edges
// are alternately outside and inside the matching.
type matcher struct {
	bipartite
	source, dest []int32 // the partner of each, or none
	level        []int32 // of sources: number of matching edges on the shortest path from a free source, none if there is no path
	cursor       []int64 // of sources: the next edge to try; earlier ones are dead ends
	last         int     // deepest level of sources that was entered
	free         bool    // a source of that level has a free destination

	queue, path []int32
}

func newMatcher(b bipartite) *matcher {
	n := b.Sources()
	m := &matcher{bipartite: b, source: make([]int32, n), dest: make([]int32, b.Dests), level: make([]int32, n), cursor: make([]int64, n)}
	for _, mates := range [][]int32{m.source, m.dest} {
		for i := range mates {
			mates[i] = none
		}
	}
	return m
}

// matched returns the number of edges of the matching.
func (m *matcher) matched() (n int) {
	for _, d := range m.source {
		if d != none {
			n++
		}
	}
	return n
}

// findLevels finds the levels of sources, up to the first from which a free
// destination can be reached, and reports whether there is one.
func (m *matcher) findLevels() bool {
	m.queue, m.last, m.free = m.queue[:0], 0, false
	for u, d := range m.source {
		m.level[u], m.cursor[u] = none, m.Offsets[u]
		if d == none {
			m.level[u] = 0
			m.queue = append(m.queue, int32(u))
		}
	}
	for at := 0; at < len(m.queue); at++ {
		u := m.queue[at]
		if int(m.level[u]) > m.last {
			if m.free {
				return true
			}
			m.last = int(m.level[u])
		}
		m.enter(u)
	}
	return m.free
}

// enter gives levels to the sources that are reached from u.
func (m *matcher) enter(u int32) {
	for _, d := range m.Cols[m.Offsets[u]:m.Offsets[u+1]] {
		switch w := m.dest[d]; {
		case w == none:
			m.free = true
		case m.level[w] == none:
			m.level[w] = m.level[u] + 1
			m.queue = append(m.queue, w)
		}
	}
}

// lengthen augments the matching along disjoint shortest paths from all free sources.
func (m *matcher) lengthen() {
	for u, d := range m.source {
		if d == none {
			m.augment(int32(u))
		}
	}
}

// augment searches a shortest path from the free source root, depth first, and exchanges its
// edges inside and outside the matching.
func (m *matcher) augment(root int32) {
	m.path = append(m.path[:0], root)
	for len(m.path) > 0 {
		next, ok := m.step(m.path[len(m.path)-1])
		switch {
		case !ok:
			m.path = m.path[:len(m.path)-1]
		case next != none:
			m.path = append(m.path, next)
		default:
			m.exchange()
			return
		}
	}
}

// step returns the next edge of u that leads to the next level: to the source next, or to
// a free destination, if next is none.
func (m *matcher) step(u int32) (next int32, ok bool) {
	for m.cursor[u] < m.Offsets[u+1] {
		w := m.dest[m.Cols[m.cursor[u]]]
		m.cursor[u]++
		if w == none || m.level[w] == m.level[u]+1 {
			return w, true
		}
	}
	return none, false
}

// exchange matches each source of the path with the destination that follows it.
func (m *matcher) exchange() {
	for _, u := range m.path {
		d := m.Cols[m.cursor[u]-1]
		m.source[u], m.dest[d] = int32(d), u
	}
}
