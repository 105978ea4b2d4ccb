package shard

import (
	"cmp"
	"io"

	"siafu/graph"
	"siafu/internal/mapped"
)

// Shard is the partition of one rank. Vertices have local ids: 0..len(Own)-1 for own vertices, and
// len(Own)..len(Own)+len(Ghosts)-1 for ghosts.
type Shard struct {
	Parts, Rank int
	Vertices    int64  // number in the whole graph
	Fingerprint string // fingerprint of the dataset
	// Assignment is a hash of the owners of all vertices and of the vertex order. All shards of a
	// partitioning have the same Assignment. Ranks compare it to detect a folder that contains
	// shards of two partitionings.
	Assignment string
	// Directed reports whether the dataset has separate out-edges. If Directed is false, each edge
	// u→v has an edge v→u.
	Directed bool

	Classes    int // number in the dataset
	FeatureDim int // number in the dataset
	// TrainTotal, ValTotal and TestTotal count vertices of the whole graph.
	TrainTotal, ValTotal, TestTotal int64
	// MajorityTest is the fraction of test vertices whose label is the most frequent label of
	// the training vertices. It is the accuracy of always predicting this label.
	MajorityTest float64

	// Whole reports whether the own vertices are all vertices, in the order of the dataset. In,
	// Weights, EdgeFeatures, Relations, Features, Labels, Targets and Split are then the dataset's, and are not
	// stored in the shard's file.
	Whole bool

	Own    []uint32 // dataset ids of the own vertices, in partition order
	Ghosts []uint32 // dataset ids of the ghosts, grouped by owner; a group is in the order of its owner
	// Ghosts[GhostStart[q]:GhostStart[q+1]] are the ghosts that rank q owns. GhostStart is
	// [Parts+1].
	GhostStart []int64
	// SendRows[SendStart[q]:SendStart[q+1]] are the own rows that are ghosts of rank q. They are
	// ascending, which is also the order of the ghosts on rank q. SendStart is [Parts+1].
	SendStart []int64
	SendRows  []uint32

	// In contains the in-edges of the own vertices. Its columns are local ids. The row of v contains
	// first the sources that are own vertices, and then the sources that are ghosts. Each group is
	// ascending. The first group ends at InOwnEnd[v], an index into In.Cols.
	In       graph.CSR
	InOwnEnd []int64
	// Weighted reports whether edges have weights. Weights are the weights of In.Cols. InStrength
	// [own + ghosts] are the sums of the weights of all edges into a vertex, OutStrength of all
	// edges out of it. They refer to the whole graph, without self loops.
	Weighted                bool
	Weights                 []float32
	InStrength, OutStrength []float32
	// EdgeFeatures [edges x EdgeDim] are the features of the edges in In.Cols. EdgeMeans [own x
	// EdgeDim] are the mean features of the edges into each own vertex, or 0 for a vertex without
	// edges. EdgeDim is 0 if the dataset has no edge features.
	EdgeDim                 int
	EdgeFeatures, EdgeMeans []float32
	// Relations are the relations of In.Cols; nil if the dataset is not relational. Each group of a row of
	// In is then ordered by relation and then by source, and may name a source once per relation.
	Relations []uint16
	// InDegree and OutDegree [own + ghosts] are the degrees of vertices in the whole graph, without
	// self loops.
	InDegree, OutDegree []uint32

	Features graph.Features // of the own vertices
	Labels   []int32        // of the own vertices
	Targets  []float32      // of the own vertices [own x Classes], if the dataset has targets
	Split    []uint8        // of the own vertices

	counts *Counts     // sizes of a sketch; nil if the shard is not a sketch
	files  []io.Closer // mapped files that have the arrays
}

// NumOwn returns the number of own vertices.
func (s *Shard) NumOwn() int { return len(s.Own) }

// NumGhosts returns the number of ghosts.
func (s *Shard) NumGhosts() int { return len(s.Ghosts) }

// OwnDegrees returns the in-degree and the out-degree of each own vertex [NumOwn] in the graph of
// the own vertices, without ghosts. Each call computes new arrays.
func (s *Shard) OwnDegrees() (in, out []uint32) {
	if s.counts != nil {
		return s.InDegree[:s.NumOwn()], s.OutDegree[:s.NumOwn()]
	}
	in, out = make([]uint32, s.NumOwn()), make([]uint32, s.NumOwn())
	for v := range in {
		own := s.In.Cols[s.In.Offsets[v]:s.InOwnEnd[v]]
		in[v] = uint32(len(own))
		for _, u := range own {
			out[u]++
		}
	}
	return in, out
}

// OwnStrengths returns the sums of the weights of the edges that OwnDegrees counts. It returns nil
// if edges have no weights.
func (s *Shard) OwnStrengths() (in, out []float32) {
	if !s.Weighted || s.counts != nil {
		return s.InStrength[:min(len(s.InStrength), s.NumOwn())], s.OutStrength[:min(len(s.OutStrength), s.NumOwn())]
	}
	in, out = make([]float32, s.NumOwn()), make([]float32, s.NumOwn())
	for v := range in {
		for i := s.In.Offsets[v]; i < s.InOwnEnd[v]; i++ {
			in[v] += s.Weights[i]
			out[s.In.Cols[i]] += s.Weights[i]
		}
	}
	return in, out
}

// WithoutEdgeFeatures returns a copy of the shard without edge features, for models that do not
// use them. It shares all other arrays with s and is valid until s is closed.
func (s *Shard) WithoutEdgeFeatures() *Shard {
	plain := *s
	plain.EdgeDim, plain.EdgeFeatures, plain.EdgeMeans = 0, nil, nil
	return &plain
}

// ForgetColumns removes the pages of In.Cols, or of a part of it, from this process's memory until they
// are read again. It ignores other memory.
func (s *Shard) ForgetColumns(part []uint32) {
	for _, f := range s.files {
		if mapping, ok := f.(interface{ Forget(part []byte) }); ok {
			mapping.Forget(mapped.Bytes(part))
		}
	}
}

// Close unmaps the shard; its slices must not be used afterwards.
func (s *Shard) Close() (err error) {
	for _, f := range s.files {
		err = cmp.Or(err, f.Close())
	}
	s.files = nil
	return err
}
