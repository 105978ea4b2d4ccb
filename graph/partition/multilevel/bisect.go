package multilevel

import (
	"math"
	"math/bits"
	"math/rand/v2"

	"siafu/graph"
)

// Settings of each bisection.
const (
	bisections = 4    // maximum number of tries; the best is used
	affordable = 1280 // maximum vertices for that number; larger graphs have fewer tries
	smallest   = 40   // vertices of its coarsest graph
	shrinkage  = 4    // maximum ratio between successive levels
	grown      = 4    // tries of growing two sides on the coarsest graph
)

// divide gives each vertex of g a part below len(limits) by recursive bisection.
func divide(g *level, limits []weights, rng *rand.Rand) []uint32 {
	owner := make([]uint32, g.n())
	if len(limits) == 1 || g.n() == 0 {
		return owner
	}
	half := (len(limits) + 1) / 2
	side := bisect(g, sides(g.total(), limits, half), rng)
	for s, own := range [][]weights{limits[:half], limits[half:]} {
		part, vertices := g.induced(side, uint32(s))
		for i, p := range divide(part, own, rng) {
			owner[vertices[i]] = p + uint32(s*half)
		}
	}
	return owner
}

// sides returns the limits of the two sides of a bisection, the first for the first half
// parts. Each bisection may use only a part of the slack: the d-th root of the slack for d
// nested bisections.
func sides(total weights, limits []weights, half int) []weights {
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

// bisect gives each vertex a side, the best of some tries.
func bisect(g *level, limits []weights, rng *rand.Rand) []uint32 {
	var b choice
	for range max(1, min(bisections, bisections*affordable/g.n())) {
		b.offer(bisectOnce(g, limits, rng))
	}
	return b.owner
}

// bisectOnce returns a multilevel bisection.
func bisectOnce(g *level, limits []weights, rng *rand.Rand) *refiner {
	smaller := *g // bisections of the same graph have different clusters
	if next := smaller.halve(rng); next != nil {
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

// halve returns the next coarser graph of a bisection, nil if there is none.
func (g *level) halve(rng *rand.Rand) *level {
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

// induced returns the graph of the vertices on one side, and these vertices.
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
		g.each(v, func(u, w uint32) {
			if side[u] == s {
				part.in.Cols, part.edges = append(part.in.Cols, number[u]), append(part.edges, w)
			}
		})
		part.in.Offsets = append(part.in.Offsets, int64(len(part.in.Cols)))
	}
	return part, vertices
}

// choice is the best of several partitions of a graph: least excess, then least cut, then first.
type choice struct {
	*refiner
	excess float64
	cut    int64
}

func (b *choice) offer(r *refiner) {
	c := choice{r, r.totalExcess(), r.cut()}
	if b.refiner == nil || c.excess < b.excess || c.excess == b.excess && c.cut < b.cut {
		*b = c
	}
}
