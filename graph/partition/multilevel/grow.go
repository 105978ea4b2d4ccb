package multilevel

import "math/rand/v2"

// grower bisects a graph by greedy graph growing (Karypis and Kumar, SIAM J. Sci. Comput. 1998,
// section 4.2). Each of two sides grows from a random vertex. In each step, the less full side gets
// the vertex with the largest connection to it: the largest total weight of edges to the side.
type grower struct {
	g          *level
	limits     []weights
	owner      []uint32 // side of each vertex, or undecided
	parts      [2]weights
	connection [2][]int64 // [side][n] connection of each undecided vertex to the side
	// heaps contain undecided vertices by connection. An entry is outdated if its gain differs
	// from the vertex's connection.
	heaps  [2]heap
	random []int // vertices in random order
}

const undecided = ^uint32(0)

// grow assigns each vertex to a side.
func grow(g *level, limits []weights, rng *rand.Rand) []uint32 {
	w := &grower{g: g, limits: limits, owner: make([]uint32, g.n()), random: rng.Perm(g.n())}
	w.connection = [2][]int64{make([]int64, g.n()), make([]int64, g.n())}
	for v := range w.owner {
		w.owner[v] = undecided
	}
	for range w.owner {
		s := 0
		if w.fill(1) < w.fill(0) {
			s = 1
		}
		w.assign(w.next(s), s)
	}
	return w.owner
}

// fill returns the largest weight of a side relative to its limit. It is 1 at the limit.
func (w *grower) fill(s int) float64 {
	fill := 0.0
	for i, x := range w.parts[s] {
		fill = max(fill, float64(x)/float64(w.limits[s][i]))
	}
	return fill
}

// next returns the undecided vertex with the largest connection to side s, or a random undecided
// vertex if none is connected to s.
func (w *grower) next(s int) uint32 {
	for h := &w.heaps[s]; len(*h) > 0; {
		if e := h.pop(); w.owner[e.v] == undecided && e.gain == w.connection[s][e.v] {
			return e.v
		}
	}
	for w.owner[w.random[0]] != undecided {
		w.random = w.random[1:]
	}
	return uint32(w.random[0])
}

// assign adds v to side s and increases the connection of its neighbours to s.
func (w *grower) assign(v uint32, s int) {
	w.owner[v] = uint32(s)
	w.parts[s] = w.parts[s].plus(w.g.weight[v])
	w.g.eachNeighbour(v, func(u, x uint32) {
		if w.owner[u] == undecided {
			w.connection[s][u] += int64(x)
			w.heaps[s].push(entry{w.connection[s][u], u})
		}
	})
}
