package shard

import (
	"siafu/graph"
	"siafu/internal/mapped"
)

// Transposed contains the local edges by source: for each source, the own vertices that gather
// from it. The backward pass of a gather uses these edges.
type Transposed struct {
	// OwnCols[OwnBegin[u]:OwnEnd[u]] are the own vertices that gather from own
	// vertex u, ascending; OwnBegin and OwnEnd are [NumOwn].
	OwnBegin, OwnEnd []int64
	OwnCols          []uint32
	// Ghost has one row per ghost: the own vertices that gather from it, ascending.
	Ghost graph.CSR
	// Weights of OwnCols and of Ghost.Cols; nil if edges have no weights.
	OwnWeights, GhostWeights []float32
	// Positions of OwnCols and Ghost.Cols in Shard.In.Cols, and so of their edge features. nil
	// if edges have no features, or if OwnCols aliases In.Cols.
	OwnAt, GhostAt []int64
}

// Edges are edges into destinations 0..len(Begin)-1. The sources of destination v are
// Cols[Begin[v]:End[v]], with values Base..Base+Sources-1.
type Edges struct {
	Begin, End    []int64
	Cols          []uint32
	Weights       []float32 // weights of Cols; nil if edges have no weights
	Base, Sources int
	Featured      bool // edges have features, in the order of Cols

	counted int // number of edges of a sketch, whose arrays have no data
}

// OwnEdges returns the edges between own vertices.
func (s *Shard) OwnEdges() Edges {
	e := Edges{Begin: s.In.Offsets[:s.NumOwn()], End: s.InOwnEnd, Cols: s.In.Cols, Weights: s.Weights, Sources: s.NumOwn(), Featured: s.EdgeDim > 0}
	if s.counts != nil {
		e.counted = int(s.counts.Edges - s.counts.Cut)
	}
	return e
}

// GhostEdges returns the edges from ghosts to own vertices.
func (s *Shard) GhostEdges() Edges {
	e := Edges{Begin: s.InOwnEnd, End: s.In.Offsets[1:], Cols: s.In.Cols, Weights: s.Weights, Base: s.NumOwn(), Sources: s.NumGhosts(), Featured: s.EdgeDim > 0}
	if s.counts != nil {
		e.counted = int(s.counts.Cut)
	}
	return e
}

// Transpose builds the transposed edges with arrays in a. ghosts are the edges from ghost
// vertices. In an undirected dataset, edges between own vertices exist in both directions. The
// own part then aliases s.In, uses no memory, and is valid until s is closed.
func (s *Shard) Transpose(a *mapped.Arena, ghosts Edges) *Transposed {
	if s.Directed {
		return s.transpose(a, s.OwnEdges(), ghosts, anywhere)
	}
	own := s.OwnEdges()
	t := &Transposed{OwnBegin: own.Begin, OwnEnd: own.End, OwnCols: own.Cols, OwnWeights: own.Weights}
	t.Ghost, t.GhostWeights, t.GhostAt = ghosts.bySource(a, anywhere)
	return t
}

// TransposeInto is Transpose of only the edges into own vertices of one split. For a sketch,
// the split is always the training set. The result does not alias s.In.
func (s *Shard) TransposeInto(a *mapped.Arena, ghosts Edges, split uint8) *Transposed {
	own := s.OwnEdges()
	if c := s.counts; c != nil {
		own.counted, ghosts.counted = int(c.TrainEdges-c.TrainCut), min(ghosts.counted, int(c.TrainCut))
	}
	return s.transpose(a, own, ghosts, func(v int) bool { return s.Split[v] == split })
}

// TransposeFirst is Transpose of only the edges into the first n own vertices.
func (s *Shard) TransposeFirst(a *mapped.Arena, ghosts Edges, n int) *Transposed {
	return s.transpose(a, s.OwnEdges(), ghosts, func(v int) bool { return v < n })
}

// EdgesInto returns the number of edges into own vertices of one split. For a sketch, the split
// is always the training set.
func (s *Shard) EdgesInto(split uint8) (edges int64) {
	if s.counts != nil {
		return s.counts.TrainEdges
	}
	for v, have := range s.Split {
		if have == split {
			edges += s.In.Offsets[v+1] - s.In.Offsets[v]
		}
	}
	return edges
}

func anywhere(int) bool { return true }

// transpose sorts the edges into the chosen own vertices by source.
func (s *Shard) transpose(a *mapped.Arena, own, ghosts Edges, chosen func(v int) bool) *Transposed {
	c, weights, at := own.bySource(a, chosen)
	n := s.NumOwn()
	t := &Transposed{OwnBegin: c.Offsets[:n], OwnEnd: c.Offsets[1:], OwnCols: c.Cols, OwnWeights: weights, OwnAt: at}
	t.Ghost, t.GhostWeights, t.GhostAt = ghosts.bySource(a, chosen)
	return t
}

// BySource returns a CSR with one row per source: the destinations of its edges, ascending. Its
// arrays are allocated in a.
func (e Edges) BySource(a *mapped.Arena) graph.CSR {
	t, _, _ := e.bySource(a, anywhere)
	return t
}

// bySource is BySource for the edges into the chosen destinations. It also returns their
// weights and, if edges have features, their positions in e.Cols.
func (e Edges) bySource(a *mapped.Arena, chosen func(v int) bool) (t graph.CSR, weights []float32, at []int64) {
	t, edges := graph.CSR{Offsets: mapped.Make[int64](a, e.Sources+1)}, e.counted
	a.Fill(func() { edges = e.count(t.Offsets, chosen) })
	t.Cols = mapped.Make[uint32](a, edges)
	if e.Weights != nil {
		weights = mapped.Make[float32](a, edges)
	}
	if e.Featured {
		at = mapped.Make[int64](a, edges)
	}
	a.Fill(func() { e.sort(t, weights, at, chosen) })
	return t, weights, at
}

// count sets offsets, which must be zero, to the begin of each source's row. It returns the
// number of edges into the chosen destinations.
func (e Edges) count(offsets []int64, chosen func(v int) bool) int {
	for v := range e.Begin {
		if !chosen(v) {
			continue
		}
		for _, u := range e.Cols[e.Begin[v]:e.End[v]] {
			offsets[int(u)-e.Base+1]++
		}
	}
	for r := range e.Sources {
		offsets[r+1] += offsets[r]
	}
	return int(offsets[e.Sources])
}

// sort fills the rows of t, and weights and positions if they are not nil. t.Offsets must
// contain the begin of each row. Rows of e are visited in ascending order, so the destinations
// of each source ascend.
func (e Edges) sort(t graph.CSR, weights []float32, at []int64, chosen func(v int) bool) {
	// offsets[r] is the cursor of row r while rows are filled. Afterwards it is the end of row
	// r, which is the begin of row r+1.
	offsets := t.Offsets
	for v := range e.Begin {
		if !chosen(v) {
			continue
		}
		for i := e.Begin[v]; i < e.End[v]; i++ {
			r := int(e.Cols[i]) - e.Base
			t.Cols[offsets[r]] = uint32(v)
			if weights != nil {
				weights[offsets[r]] = e.Weights[i]
			}
			if at != nil {
				at[offsets[r]] = i
			}
			offsets[r]++
		}
	}
	copy(offsets[1:], offsets)
	offsets[0] = 0
}
