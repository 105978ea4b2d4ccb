package shard

import (
	"siafu/graph"
	"siafu/internal/mapped"
)

// Counts contains the sizes of one rank's shard.
type Counts struct {
	Vertices int64 `json:"vertices"`
	Edges    int64 `json:"edges"` // edges into own vertices
	Cut      int64 `json:"cut"`   // edges from ghosts into own vertices
	Ghosts   int64 `json:"ghosts"`
	Train    int64 `json:"train"`
	SendRows int64 `json:"send_rows"` // rows sent to all other ranks in one exchange
	// TrainEdges is the number of edges into own training vertices. TrainCut is the number of these
	// edges that come from ghosts. FeatureNNZ is the number of non-zero features of own vertices,
	// or 0 if features are dense. SendTo [parts] is the number of rows sent to each rank in one
	// exchange.
	TrainEdges int64   `json:"train_edges"`
	TrainCut   int64   `json:"train_cut"`
	FeatureNNZ int64   `json:"feature_nnz"`
	SendTo     []int64 `json:"send_to"`
	// Hops are the ghosts of the shard, and then, hop by hop, the other vertices with edges into
	// them that the rank does not own. It has CountedHops elements, or is empty if the hops have
	// not been counted.
	Hops []Hop `json:"hops,omitempty"`
	// Runs is the estimated number of pairs of an own vertex and a relation of edges into it, or 0 if it is
	// unknown. It is not stored.
	Runs int64 `json:"-"`
	// CodedBits is the estimated number of bits per edge of coded columns, or 0 if it is unknown. It is
	// not stored.
	CodedBits float64 `json:"-"`
}

// Purposes of the arrays of a sketch.
const (
	EdgeArrays    = "shard: edges"
	VertexArrays  = "shard: vertices and ghosts"
	FeatureArrays = "shard: features"
)

// Runs returns the estimated number of pairs of an own vertex and a relation, of edges of the shard.
func (s *Shard) Runs(edges, relations int) int {
	most := min(edges, len(s.Own)*relations)
	if s.counts != nil && s.counts.Runs > 0 {
		return min(most, int(s.counts.Runs))
	}
	return most
}

// Sketch returns a shard without data, for memory estimates. head contains the number of parts,
// classes and features, whether edges have weights and features, Whole, and Features.Half other than nil
// if dense features are bfloat16. c contains the sizes. a must
// be an arena for sketches, which counts the bytes of arrays by purpose and allocates no memory.
func Sketch(head Shard, c Counts, sparse bool, a *mapped.Arena) *Shard {
	s, n, local := &head, int(c.Vertices), int(c.Vertices+c.Ghosts)
	s.counts = &c
	edges, vertices, features := a.For(EdgeArrays), a.For(VertexArrays), a.For(FeatureArrays)
	s.In = graph.CSR{Offsets: mapped.Make[int64](edges, n+1), Cols: mapped.Make[uint32](edges, int(c.Edges))}
	if head.Weighted {
		s.Weights = mapped.Make[float32](edges, int(c.Edges))
		s.InStrength, s.OutStrength = mapped.Make[float32](vertices, local), mapped.Make[float32](vertices, local)
	}
	s.EdgeFeatures = mapped.Make[float32](edges, int(c.Edges)*head.EdgeDim)
	s.EdgeMeans = mapped.Make[float32](vertices, n*head.EdgeDim)
	if s.InOwnEnd = s.In.Offsets[1:]; !s.Whole {
		s.InOwnEnd = mapped.Make[int64](edges, n)
	}
	s.Own, s.Ghosts = mapped.Make[uint32](vertices, n), mapped.Make[uint32](vertices, int(c.Ghosts))
	s.InDegree, s.OutDegree = mapped.Make[uint32](vertices, local), mapped.Make[uint32](vertices, local)
	s.Labels, s.Split = mapped.Make[int32](vertices, n), mapped.Make[uint8](vertices, n)
	s.SendRows = mapped.Make[uint32](vertices, int(c.SendRows))
	s.SendStart, s.GhostStart = make([]int64, s.Parts+1), make([]int64, s.Parts+1)
	s.SendStart[s.Parts], s.GhostStart[s.Parts] = c.SendRows, c.Ghosts
	for q, rows := range c.SendTo {
		s.SendStart[q+1] = s.SendStart[q] + rows
	}
	half := s.Features.Half != nil && !sparse
	s.Features = graph.Features{Rows: n, Dim: s.FeatureDim}
	switch {
	case half:
		s.Features.Half = mapped.Make[graph.BF16](features, n*s.FeatureDim)
		return s
	case !sparse:
		s.Features.Dense = mapped.Make[float32](features, n*s.FeatureDim)
		return s
	}
	s.Features.Sparse = &graph.SparseRows{
		Offsets: mapped.Make[int64](features, n+1),
		Cols:    mapped.Make[uint32](features, int(c.FeatureNNZ)), Vals: mapped.Make[float32](features, int(c.FeatureNNZ)),
	}
	return s
}
