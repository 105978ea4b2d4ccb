package multilevel

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"siafu/graph"
)

// Settings of each bisection.
const (
	bisections = 4    // maximum number of tries; the best result is used
	affordable = 1280 // graphs with more vertices have fewer tries
	smallest   = 40   // a graph with at most this number of vertices is not coarsened
	shrinkage  = 4    // maximum ratio of the numbers of vertices of successive levels
	grown      = 4    // tries of grow on the coarsest graph
)

// divide returns a part below len(limits) for each vertex of g, by recursive bisection.
func divide(g *level, limits []weights, rng *rand.Rand) []uint32 {
	owner := make([]uint32, g.n())
	if len(limits) == 1 || g.n() == 0 {
		return owner
	}
	half := (len(limits) + 1) / 2
	side := bisect(g, sideLimits(g.total(), limits, half), rng)
	for s, own := range [][]weights{limits[:half], limits[half:]} {
		part, vertices := g.induced(side, uint32(s))
		for i, p := range divide(part, own, rng) {
			owner[vertices[i]] = p + uint32(s*half)
		}
	}
	return owner
}

// sideLimits returns the limits of the two sides of a bisection. The first side will contain the
// parts below half, the second side the other parts. With d nested bisections, each may use only
// the d-th root of the slack, because the overloads of nested bisections multiply.
func sideLimits(total weights, limits []weights, half int) []weights {
	var first, all weights
	for p, l := range limits {
		for i := range l {
			all[i] += min(l[i], boundless/int64(len(limits)))
			if p < half {
				first[i] = all[i]
			}
		}
	}
	two := make([]weights, 2)
	depth := float64(bits.Len(uint(len(limits) - 1)))
	for i, t := range total {
		slack := math.Pow(max(float64(all[i])/max(float64(t), 1), 1), 1/depth)
		share := float64(first[i]) / float64(all[i])
		two[0][i] = max(int64(math.Ceil(float64(t)*share*slack)), 1)
		two[1][i] = max(int64(math.Ceil(float64(t)*(1-share)*slack)), 1)
	}
	return two
}

// bisect returns a side, 0 or 1, for each vertex: the best of several tries of bisectOnce.
func bisect(g *level, limits []weights, rng *rand.Rand) []uint32 {
	var b choice
	for range max(1, min(bisections, bisections*affordable/g.n())) {
		b.offer(bisectOnce(g, limits, rng))
	}
	return b.owner
}

// bisectOnce bisects g once: it bisects a coarser graph and refines the result on g. The coarsest
// graph is bisected by grow.
func bisectOnce(g *level, limits []weights, rng *rand.Rand) *refiner {
	smaller := *g // a copy, because each bisection of g sets its own clusters
	if next := smaller.coarser(rng); next != nil {
		r := newRefiner(g, smaller.project(bisectOnce(next, limits, rng).owner), limits)
		r.run()
		return r
	}
	var b choice
	for range grown {
		r := newRefiner(g, grow(g, limits, rng), limits)
		r.run()
		b.offer(r)
	}
	return b.refiner
}

// coarser returns the next coarser graph of a bisection. It returns nil if g is small enough, or if
// clustering removes less than a tenth of the vertices.
func (g *level) coarser(rng *rand.Rand) *level {
	if g.n() <= smallest {
		return nil
	}
	var most weight
	for i, t := range g.total() {
		most[i] = uint32(min(maxWeight, 1+t/smallest, 1+shrinkage*t/int64(g.n())))
	}
	next := g.contract(newClustering(g, most, rng.Uint64()).run())
	if next.n() > g.n()*9/10 {
		return nil
	}
	return next
}

// induced returns the subgraph of the vertices on side s. Vertex i of the subgraph is vertices[i]
// of g.
func (g *level) induced(side []uint32, s uint32) (part *level, vertices []uint32) {
	number := make([]uint32, g.n())
	for v := range number {
		if side[v] == s {
			number[v] = uint32(len(vertices))
			vertices = append(vertices, uint32(v))
		}
	}
	part = &level{in: graph.CSR{Offsets: []int64{0}}, edges: []uint32{}}
	for _, v := range vertices {
		part.weight = append(part.weight, g.weight[v])
		g.eachNeighbour(v, func(u, w uint32) {
			if side[u] == s {
				part.in.Cols, part.edges = append(part.in.Cols, number[u]), append(part.edges, w)
			}
		})
		part.in.Offsets = append(part.in.Offsets, int64(len(part.in.Cols)))
	}
	return part, vertices
}

// choice keeps the best of several partitions of a graph: the one with the least excess. Among
// equals it keeps the one with the least cut, and then the first.
type choice struct {
	*refiner
	excess float64
	cut    int64
}

// offer replaces the choice by r if r is better.
func (b *choice) offer(r *refiner) {
	c := choice{r, r.totalExcess(), r.cut()}
	if b.refiner == nil || c.excess < b.excess || c.excess == b.excess && c.cut < b.cut {
		*b = c
	}
}
