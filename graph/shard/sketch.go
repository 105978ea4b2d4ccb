package shard

import (
	"siafu/graph"
	"siafu/graph/mapped"
)

// Counts are what is known of a shard that nobody has made.
type Counts struct {
	Vertices, Ghosts     int64
	Edges, Cut           int64   // into own vertices, and those of them from ghosts
	TrainEdges, TrainCut int64   // the same into training vertices
	NonZeros             int64   // of sparse features
	SendRows             int64   // to all other ranks
	SendTo               []int64 // to each, nil: not known
}

// Purposes of a shard's arrays in a sketch, all of which lie in its file.
const (
	EdgeArrays    = "shard: edges"
	VertexArrays  = "shard: vertices and ghosts"
	FeatureArrays = "shard: features"
)

// Sketch is the shard that head begins, with its number of parts, classes and
// features, as far as counts say. Its arrays have lengths and, in a, which is a
// sketch, no memory; what is made of it can be counted and not used.
func Sketch(head Shard, c Counts, sparse bool, a *mapped.Arena) *Shard {
	s, n, local := &head, int(c.Vertices), int(c.Vertices+c.Ghosts)
	s.counts = &c
	edges, vertices, features := a.For(EdgeArrays), a.For(VertexArrays), a.For(FeatureArrays)
	s.In = graph.CSR{Offsets: mapped.Make[int64](edges, n+1), Cols: mapped.Make[uint32](edges, int(c.Edges))}
	s.InOwnEnd = mapped.Make[int64](edges, n)
	s.Own, s.Ghosts = mapped.Make[uint32](vertices, n), mapped.Make[uint32](vertices, int(c.Ghosts))
	s.InDegree, s.OutDegree = mapped.Make[uint32](vertices, local), mapped.Make[uint32](vertices, local)
	s.Labels, s.Split = mapped.Make[int32](vertices, n), mapped.Make[uint8](vertices, n)
	s.SendRows = mapped.Make[uint32](vertices, int(c.SendRows))
	s.SendStart, s.GhostStart = make([]int64, s.Parts+1), make([]int64, s.Parts+1)
	s.SendStart[s.Parts], s.GhostStart[s.Parts] = c.SendRows, c.Ghosts
	for q, rows := range c.SendTo {
		s.SendStart[q+1] = s.SendStart[q] + rows
	}
	s.Features = graph.Features{Rows: n, Dim: s.FeatureDim}
	if !sparse {
		s.Features.Dense = mapped.Make[float32](features, n*s.FeatureDim)
		return s
	}
	s.Features.Sparse = &graph.SparseRows{
		Offsets: mapped.Make[int64](features, n+1),
		Cols:    mapped.Make[uint32](features, int(c.NonZeros)), Vals: mapped.Make[float32](features, int(c.NonZeros)),
	}
	return s
}
