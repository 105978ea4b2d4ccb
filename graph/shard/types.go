package shard

import "siafu/graph"

// Shard is the partition of one rank. Local ids are 0..len(Own)-1 for own
// vertices and len(Own)..len(Own)+len(Ghosts)-1 for ghosts.
type Shard struct {
	Parts, Rank int
	Vertices    int64  // of the whole graph
	Fingerprint string // of the dataset
	// Assignment is a hash of the owner of every vertex and of their order. It
	// is the same in all shards that fit together: ranks that compare theirs
	// notice a folder in which the shards of two partitionings were mixed.
	Assignment string
	// Directed tells that the dataset keeps out-edges of its own; where it is
	// false, u→v is an edge whenever v→u is one.
	Directed bool

	Classes    int // of the dataset
	FeatureDim int // of the dataset
	// TrainTotal, ValTotal and TestTotal count vertices of the whole graph.
	TrainTotal, ValTotal, TestTotal int64
	// MajorityTest is the fraction of all test vertices that bear the most
	// frequent label of the training vertices: the accuracy of guessing it.
	MajorityTest float64

	Own    []uint32 // dataset ids of the own vertices, in the order that they were given
	Ghosts []uint32 // dataset ids of the ghosts, grouped by owner, in a group in the owner's order
	// GhostStart[q]:GhostStart[q+1] are the ghosts owned by rank q; [Parts+1].
	GhostStart []int64
	// SendRows[SendStart[q]:SendStart[q+1]] are the own rows that rank q holds
	// as ghosts, in the order of its ghosts, which is ascending; SendStart is
	// [Parts+1].
	SendStart []int64
	SendRows  []uint32

	// In holds the in-edges of the own vertices as local ids, own sources
	// first and then ghosts, ascending in both. Row v's own sources end at
	// InOwnEnd[v] (an index into In.Cols).
	In       graph.CSR
	InOwnEnd []int64
	// If edges are Weighted, Weights are the weights of In.Cols. InStrength and OutStrength
	// are the sums of weights of all edges into and out of own vertices and then ghosts, in
	// the whole graph, without self loops.
	Weighted                bool
	Weights                 []float32
	InStrength, OutStrength []float32
	// EdgeFeatures are those of In.Cols [edges x EdgeDim] and EdgeMeans the means of those of
	// the edges into own vertices [own x EdgeDim], 0 where there are none. EdgeDim is 0 where
	// the dataset's edges have no features.
	EdgeDim                 int
	EdgeFeatures, EdgeMeans []float32
	// InDegree and OutDegree of own vertices and then ghosts, in the whole
	// graph, without self loops.
	InDegree, OutDegree []uint32

	Features graph.Features // of the own vertices
	Labels   []int32        // of the own vertices
	Targets  []float32      // of the own vertices [own x Classes], where the dataset has some
	Split    []uint8        // of the own vertices

	counts *Counts // of a sketch, else nil
	close  func() error
}

// NumOwn returns the number of own vertices.
func (s *Shard) NumOwn() int { return len(s.Own) }

// NumGhosts returns the number of ghosts.
func (s *Shard) NumGhosts() int { return len(s.Ghosts) }

// OwnDegrees returns the numbers of edges between own vertices into and out of each
// [NumOwn]. They are not kept.
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

// OwnStrengths returns the sums of the weights of these edges, nil where they have none.
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

// WithoutEdgeFeatures returns the shard for whom features of edges make no difference: they have no
// place in what is made of it. It ends with s.
func (s *Shard) WithoutEdgeFeatures() *Shard {
	plain := *s
	plain.EdgeDim, plain.EdgeFeatures, plain.EdgeMeans = 0, nil, nil
	return &plain
}

// Close unmaps the shard; its slices must not be used afterwards.
func (s *Shard) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}
