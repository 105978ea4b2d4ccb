package partition

// rebalance repairs parts that exceed their limits after the last pass. Each sweep moves vertices
// out of such parts if the move lowers the total excess. A vertex loses neighbours if its new part
// has fewer of them. The first sweep allows no loss. Later sweeps allow a growing loss, relative to
// the number of the vertex's edges.
func (s *stream) rebalance() {
	for _, price := range []float64{0, 0.125, 0.25, 0.5, 1, 1} {
		for v, p := range s.owner {
			if b := &s.parts[p]; b.vertices > s.maxVertices || b.edges > s.maxEdges {
				s.moveOut(v, b, price)
			}
		}
	}
}

// moveOut moves v from its part b to another part if this lowers the total excess. Among such parts
// it selects the one with the most neighbours of v. v does not move if it would lose more than
// price times its degree in neighbours.
//
// Design note: the destination may exceed its limits after the move. Assume that hubs have filled
// some parts with edges, and vertices of low degree have filled all others with vertices. Then no
// part has room for v, and only moves that slightly overfill another part lower the total excess.
func (s *stream) moveOut(v int, b *part, price float64) {
	s.count(v)
	degree := s.degree(v)
	freed := s.excess(b.vertices, b.edges) - s.excess(b.vertices-1, b.edges-degree)
	to := -1
	for q := range s.parts {
		c := &s.parts[q]
		if c == b || to >= 0 && c.neighbours <= s.parts[to].neighbours {
			continue
		}
		if s.excess(c.vertices+1, c.edges+degree)-s.excess(c.vertices, c.edges) < freed {
			to = q
		}
	}
	if to < 0 || float64(b.neighbours-s.parts[to].neighbours) > price*float64(degree) {
		return
	}
	s.load(b, -1, -degree)
	s.place(v, to)
}

// excess returns the sum of (load/maximum - 1)² over the loads (vertices, edges) of a part that
// exceed their maximum.
func (s *stream) excess(vertices, edges int64) float64 {
	v := max(float64(vertices)/float64(s.maxVertices)-1, 0)
	e := max(float64(edges)/float64(s.maxEdges)-1, 0)
	return float64(v*v) + float64(e*e)
}
