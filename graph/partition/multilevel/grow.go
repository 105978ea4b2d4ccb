package multilevel

import "math/rand/v2"

// grower grows two sides of a graph from a vertex each: the less full side takes the vertex
// with the largest connection to it (greedy graph growing, Karypis and Kumar, SIAM J. Sci.
// Comput. 1998, section 4.2).
type grower struct {
	g      *level
	limits []weights
	owner  []uint32 // undecided at first
	parts  [2]weights
	near   [2][]int64 // connection of undecided vertices to a side
	heaps  [2]heap    // of undecided vertices, by connection; stale if it differs from near
	random []int      // vertices in random order
}

const undecided = ^uint32(0)

// grow assigns each vertex to a side.
func grow(g *level, limits []weights, rng *rand.Rand) []uint32 {
	w := &grower{g: g, limits: limits, owner: make([]uint32, g.n()), random: rng.Perm(g.n())}
	w.near = [2][]int64{make([]int64, g.n()), make([]int64, g.n())}
	for v := range w.owner {
		w.owner[v] = undecided
	}
	for range w.owner {
		s := 0
		if w.fill(1) < w.fill(0) {
			s = 1
		}
		w.take(w.next(s), s)
	}
	return w.owner
}

// fill returns the fill of a side: 1 at its limit.
func (w *grower) fill(s int) float64 {
	fill := 0.0
	for i, x := range w.parts[s] {
		fill = max(fill, float64(x)/float64(w.limits[s][i]))
	}
	return fill
}

// next returns the vertex that side s takes: a random one if none is connected.
func (w *grower) next(s int) uint32 {
	for h := &w.heaps[s]; len(*h) > 0; {
		if e := h.pop(); w.owner[e.v] == undecided && e.gain == w.near[s][e.v] {
			return e.v
		}
	}
	for w.owner[w.random[0]] != undecided {
		w.random = w.random[1:]
	}
	return uint32(w.random[0])
}

func (w *grower) take(v uint32, s int) {
	w.owner[v] = uint32(s)
	w.parts[s] = w.parts[s].plus(w.g.weight[v])
	w.g.each(v, func(u, x uint32) {
		if w.owner[u] == undecided {
			w.near[s][u] += int64(x)
			w.heaps[s].push(entry{w.near[s][u], u})
		}
	})
}
