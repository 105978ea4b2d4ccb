package partition

// settle repairs parts that the last vertices of the last pass have overfilled. Each sweep moves
// vertices out of overfilled parts if that lowers the excess. The first sweep allows only moves
// without loss of neighbours, later ones a loss of up to a growing fraction of a vertex's edges.
func (s *stream) settle() {
	for _, price := range []float64{0, 0.125, 0.25, 0.5, 1, 1} {
		for v, p := range s.owner {
			if b := &s.parts[p]; b.vertices > s.maxVertices || b.edges > s.maxEdges {
				s.leave(v, b, price)
			}
		}
	}
}

// leave moves v out of its part b to the part with the most neighbours, among parts that lower
// the joint excess. v must lose at most price times its degree in neighbours.
//
// Design note: requiring a part with room for v is not enough. If hubs have filled some parts
// with edges and small vertices others with vertices, every part is full in one way, and only
// moves that slightly overfill another part help.
func (s *stream) leave(v int, b *part, price float64) {
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
	s.put(v, to)
}

// excess returns the sum of squares of a part's overloads, relative to the maxima.
func (s *stream) excess(vertices, edges int64) float64 {
	v := max(float64(vertices)/float64(s.maxVertices)-1, 0)
	e := max(float64(edges)/float64(s.maxEdges)-1, 0)
	return v*v + e*e
}
