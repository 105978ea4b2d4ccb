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

// Slack contains the maximum of each weight of a rank, relative to the mean over ranks. Each value
// is at least 1. +Inf means that the weight is not balanced. The maximum is rounded up.
type Slack struct {
	Vertices, Edges, Train float64
}

// coarsest returns the target number of vertices of the coarsest graph. With this number, the
// weight of the heaviest vertex is less than the slack, and many partitions can be tried.
//
// Design note: with 8 parts, the target is 80 vertices per part. A target of 160 takes up to 4
// times as long, and so do levels that shrink by a factor of at most 4. In these cases the cut
// differs by no more than it does between seeds.
func coarsest(parts int) int { return max(640, 30*parts) }

// Partition returns the owner of each vertex, a rank in 0..Parts-1. All ranks are within Slack if
// moves of single vertices can achieve this. A vertex with more edges than a rank's limit is not
// divided. A rank may have no vertices. Partition panics if Parts is below 1.
func Partition(ds *graph.Dataset, o Options) []uint32 {
	if o.Parts < 1 {
		panic("multilevel: no parts")
	}
	g := finest(ds)
	if o.Parts == 1 {
		return make([]uint32, g.n())
	}
	limits := o.Slack.limits(g, o.Parts)
	levels := coarsen(g, coarsest(o.Parts), maxClusterWeight(g, limits[0], coarsest(o.Parts)), o.Seed)
	owner := initial(levels[len(levels)-1], limits, o.Seed)
	for i := len(levels) - 2; i >= 0; i-- {
		owner = levels[i].project(owner)
		newRefiner(levels[i], owner, limits).run()
	}
	return owner
}

// limits returns the limits of all parts. If a vertex has more edges than the limit, no part could
// contain it. The limit of edges is then increased by the number of edges of that vertex.
func (s Slack) limits(g *level, parts int) []weights {
	total, hub := g.total(), g.maxInDegree()
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

// maxInDegree returns the largest number of edges into one vertex.
func (g *level) maxInDegree() int64 {
	most := uint32(0)
	for _, w := range g.weight {
		most = max(most, w[1])
	}
	return int64(most)
}

// maxClusterWeight returns the maximum weight of a cluster: the mean weight of the vertices of a
// graph with size vertices. A weight that is not balanced has the maximum maxWeight.
func maxClusterWeight(g *level, limit weights, size int) weight {
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

// coarsen returns the levels from g on. It ends with a level of at most size vertices, or if the
// next level would have more than nine tenths of the vertices. most is the maximum weight of a
// cluster.
func coarsen(g *level, size int, most weight, seed uint64) []*level {
	levels := []*level{g}
	for g.n() > size {
		label := newClustering(g, most, Hash(seed, uint64(len(levels)))).run()
		next := g.contract(label)
		if next.n() > g.n()*9/10 {
			break
		}
		levels = append(levels, next)
		g = next
	}
	return levels
}
