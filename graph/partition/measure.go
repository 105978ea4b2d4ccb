package partition

import (
	"slices"

	"siafu/graph"
)

// Measure says what an assignment of ds to o.Parts ranks costs, without the
// shards that Build would make of it, nor an order of vertices. owner must have
// an entry below o.Parts for each vertex.
func Measure(ds *graph.Dataset, owner []uint32, o Options) *Report {
	o = o.withDefaults()
	checkOwners(owner, ds.In.Rows(), o.Parts)
	r := &Report{Method: o.Method, Parts: o.Parts, Ranks: make([]RankReport, o.Parts)}
	last := slices.Repeat([]int{-1}, o.Parts) // the vertex that each rank last got as a ghost
	for v, p := range owner {
		one := &r.Ranks[p]
		one.Vertices++
		one.Edges += ds.In.Offsets[v+1] - ds.In.Offsets[v]
		if ds.Split[v] == graph.SplitTrain {
			one.Train++
		}
		for _, to := range ds.Out.Row(v) {
			q := owner[to]
			if q == p {
				continue
			}
			r.Ranks[q].Cut++
			if last[q] != v {
				last[q] = v
				r.Ranks[q].Ghosts++
				one.SendRows++
			}
		}
	}
	for _, one := range r.Ranks {
		r.sum(one)
	}
	r.finish()
	return r
}
