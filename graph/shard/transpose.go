package shard

import (
	"siafu/graph"
	"siafu/internal/mapped"
)

// Transposed contains the edges of a shard, grouped by source. For each source, it lists the own
// vertices that gather from the source. The backward pass of a gather uses these lists.
type Transposed struct {
	// OwnCols[OwnBegin[u]:OwnEnd[u]] are the own vertices that gather from own
	// vertex u, ascending; OwnBegin and OwnEnd are [NumOwn].
	OwnBegin, OwnEnd []int64
	OwnCols          []uint32
	// Ghost has a row for each ghost: the own vertices that gather from it, ascending.
	Ghost graph.CSR
	// Weights of OwnCols and of Ghost.Cols; nil if edges have no weights.
	OwnWeights, GhostWeights []float32
	// OwnAt and GhostAt are the indices in Shard.In.Cols of the edges in OwnCols and Ghost.Cols. The
	// features of an edge have the same index. OwnAt and GhostAt are nil if edges have no features.
	// OwnAt is also nil if OwnCols aliases In.Cols.
	OwnAt, GhostAt []int64
}

// Edges contains the edges into the destinations 0..len(Begin)-1. The sources of destination v are
// Cols[Begin[v]:End[v]]. Sources have the ids Base..Base+Sources-1.
type Edges struct {
	Begin, End    []int64
	Cols          []uint32
	Weights       []float32 // weights of Cols; nil if edges have no weights
	Base, Sources int
	Featured      bool // edges have features, in the order of Cols

	counted int  // number of edges of a sketch
	sketch  bool // arrays have no data
}

// Len returns the number of edges.
func (e Edges) Len() int {
	if e.sketch {
		return e.counted
	}
	n := int64(0)
	for v := range e.Begin {
		n += e.End[v] - e.Begin[v]
	}
	return int(n)
}

// OwnEdges returns the edges between own vertices.
func (s *Shard) OwnEdges() Edges {
	e := Edges{Begin: s.In.Offsets[:s.NumOwn()], End: s.InOwnEnd, Cols: s.In.Cols, Weights: s.Weights,
		Sources: s.NumOwn(), Featured: s.EdgeDim > 0}
	if s.counts != nil {
		e.counted, e.sketch = int(s.counts.Edges-s.counts.Cut), true
	}
	return e
}

// GhostEdges returns the edges from ghosts to own vertices.
func (s *Shard) GhostEdges() Edges {
	e := Edges{Begin: s.InOwnEnd, End: s.In.Offsets[1:], Cols: s.In.Cols, Weights: s.Weights, Base: s.NumOwn(),
		Sources: s.NumGhosts(), Featured: s.EdgeDim > 0}
	if s.counts != nil {
		e.counted, e.sketch = int(s.counts.Cut), true
	}
	return e
}

// Transpose returns all edges of s by source. Its arrays are allocated in a. ghosts must be the
// edges from ghosts. In an undirected dataset, each edge between own vertices exists in both
// directions. The edges between own vertices then alias s.In, use no memory, and are valid until s
// is closed.
func (s *Shard) Transpose(a *mapped.Arena, ghosts Edges) *Transposed {
	if s.Directed {
		return s.transpose(a, s.OwnEdges(), ghosts, anywhere)
	}
	own := s.OwnEdges()
	t := &Transposed{OwnBegin: own.Begin, OwnEnd: own.End, OwnCols: own.Cols, OwnWeights: own.Weights}
	t.Ghost, t.GhostWeights, t.GhostAt = ghosts.bySource(a, anywhere)
	return t
}

// TransposeInto is Transpose for the edges into the own vertices of one split. In a sketch, the split
// is always the training set. The result does not alias s.In.
func (s *Shard) TransposeInto(a *mapped.Arena, ghosts Edges, split uint8) *Transposed {
	own := s.OwnEdges()
	if c := s.counts; c != nil {
		own.counted, ghosts.counted = int(c.TrainEdges-c.TrainCut), min(ghosts.counted, int(c.TrainCut))
	}
	return s.transpose(a, own, ghosts, func(v int) bool { return s.Split[v] == split })
}

// TransposeFirst is Transpose of only the edges into the first n own vertices. The own vertices of a
// sketch must be those of its Counts.Hops.
func (s *Shard) TransposeFirst(a *mapped.Arena, ghosts Edges, n int) *Transposed {
	own := s.OwnEdges()
	if s.counts != nil {
		inner, cut := s.counts.into(n)
		own.counted, ghosts.counted = inner, min(ghosts.counted, cut)
	}
	return s.transpose(a, own, ghosts, func(v int) bool { return v < n })
}

// EdgesInto returns the number of edges into the own vertices of one split. In a sketch, the split
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

// transpose groups the edges into the chosen own vertices by source.
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

// count sets offsets to the start of each source's row. The offsets must be 0 before. count returns
// the number of edges into the chosen destinations.
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

// sort fills the rows of t (counting sort). It also fills weights and at, unless they are nil.
// t.Offsets must contain the start of each row. The destinations of e are visited in ascending
// order, so they are ascending in each row of t.
func (e Edges) sort(t graph.CSR, weights []float32, at []int64, chosen func(v int) bool) {
	// While rows are filled, offsets[r] is the index of the next edge of row r. Afterwards it is the
	// end of row r, which is the start of row r+1.
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
