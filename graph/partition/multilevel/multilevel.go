package multilevel

import (
	"math"
	"slices"

	"siafu/graph"
)

// Options are the options of Partition.
type Options struct {
	Parts int
	Seed  uint64
	Slack Slack
}

// Slack is the maximum load of a rank as a multiple of its fair share, each at least 1; +Inf
// disables that balance. A share is rounded up.
type Slack struct {
	Vertices, Edges, Train float64
}

// coarsest returns the target size of the coarsest graph: large enough that its heaviest
// vertex is less than the slack, small enough to try many partitions.
//
// Design note: 160 vertices per part instead of 80 for 8 parts, or levels that shrink by at
// most 4, take up to 4 times as long and have the same cut within the noise of seeds.
func coarsest(parts int) int { return max(640, 30*parts) }

// Partition returns the owner of each vertex, a rank in 0..Parts-1. Slack is respected if
// moves of single vertices can achieve it; a vertex with more edges than a share is never
// divided. A rank may get nothing. Parts must be at least 1.
func Partition(ds *graph.Dataset, o Options) []uint32 {
	if o.Parts < 1 {
		panic("multilevel: no parts")
	}
	g := finest(ds)
	if o.Parts == 1 {
		return make([]uint32, g.n())
	}
	limits := o.Slack.limits(g, o.Parts)
	levels := coarsen(g, coarsest(o.Parts), heaviest(g, limits[0], coarsest(o.Parts)), o.Seed)
	owner := initial(levels[len(levels)-1], limits, o.Seed)
	for i := len(levels) - 2; i >= 0; i-- {
		owner = levels[i].project(owner)
		newRefiner(levels[i], owner, limits).run()
	}
	return owner
}

// limits returns the limits of parts. If one vertex has more edges than a part's limit, the
// limit is raised by its edges, because no part could have it otherwise.
func (s Slack) limits(g *level, parts int) []weights {
	total, hub := g.total(), g.hub()
	var most weights
	for i, slack := range []float64{s.Vertices, s.Edges, s.Train} {
		most[i] = boundless
		if x := math.Ceil(slack * float64(total[i]) / float64(parts)); x < boundless {
			most[i] = max(int64(x), 1)
		}
	}
	if hub > most[1] {
		most[1] += hub
	}
	return slices.Repeat([]weights{most}, parts)
}

// hub returns the largest number of edges into one vertex.
func (g *level) hub() int64 {
	most := uint32(0)
	for _, w := range g.weight {
		most = max(most, w[1])
	}
	return int64(most)
}

// heaviest returns the maximum weight of a vertex of the coarsest graph with size vertices:
// the mean.
func heaviest(g *level, limit weights, size int) weight {
	var most weight
	total := g.total()
	for i := range most {
		most[i] = maxWeight
		if limit[i] < boundless {
			most[i] = uint32(min(maxWeight, 1+total[i]/int64(size)))
		}
	}
	return most
}

// coarsen returns g and coarser graphs, down to about size vertices or until they no longer
// shrink.
func coarsen(g *level, size int, most weight, seed uint64) []*level {
	levels := []*level{g}
	for g.n() > size {
		label := newClustering(g, most, mix(seed, uint64(len(levels)))).run()
		next := g.contract(label)
		if next.n() > g.n()*9/10 {
			break
		}
		levels = append(levels, next)
		g = next
	}
	return levels
}
