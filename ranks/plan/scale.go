package plan

import (
	"maps"
	"math"
	"slices"

	"siafu/graph"
	"siafu/graph/partition"
	"siafu/internal/fault"
)

// times returns n times --scale.
func (q *request) times(n int64) int64 {
	if q.Scale == 1 {
		return n
	}
	return int64(math.Round(q.Scale * float64(n)))
}

// larger returns the description of a graph with --scale times as many vertices and edges. Its
// degrees, features and classes are those of the dataset.
func (q *request) larger() (*graph.Meta, error) {
	m := *q.meta
	if q.Scale == 1 {
		return &m, nil
	}
	if most := int64(math.MaxUint32); float64(m.Vertices)*q.Scale > float64(most) {
		return nil, fault.New(fault.Usage, op, "", "--scale=%g of %d vertices", q.Scale, m.Vertices).
			Then("set at most %d: a vertex id has 32 bits", most/m.Vertices)
	}
	for _, n := range []*int64{&m.Vertices, &m.Edges, &m.FeatureNNZ, &m.Train, &m.Val, &m.Test, &m.Isolated} {
		*n = q.times(*n)
	}
	m.Files = maps.Clone(m.Files)
	for name, file := range m.Files {
		file.Bytes = q.times(file.Bytes)
		m.Files[name] = file
	}
	return &m, nil
}

// scaled returns the report of a partitioning of that graph. Every rank has --scale times as many
// vertices, edges and ghosts: the number of ghosts per vertex depends on the degrees and on the cut,
// not on the size of a graph whose edges lead to random vertices.
func (q *request) scaled(r *partition.Report) *partition.Report {
	if q.Scale == 1 {
		return r
	}
	all := *r
	all.Vertices, all.Edges, all.CutEdges, all.Ghosts = q.times(r.Vertices), q.times(r.Edges), q.times(r.CutEdges), q.times(r.Ghosts)
	all.PredictedBytes, all.Ranks = q.times(r.PredictedBytes), slices.Clone(r.Ranks)
	for k := range all.Ranks {
		one := &all.Ranks[k]
		one.SendTo = slices.Clone(one.SendTo)
		one.Hops = nil // estimated from the other counts
		for _, n := range []*int64{&one.Vertices, &one.Edges, &one.Cut, &one.Ghosts, &one.Train, &one.SendRows, &one.TrainEdges,
			&one.TrainCut, &one.FeatureNNZ} {
			*n = q.times(*n)
		}
		for i := range one.SendTo {
			one.SendTo[i] = q.times(one.SendTo[i])
		}
	}
	return &all
}
