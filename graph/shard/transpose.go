package shard

import (
	"siafu/graph"
	"siafu/internal/mapped"
)

// Transposed holds the local edges by source: for each source, the own
// vertices that gather from it. The gradient of a gather runs along it.
type Transposed struct {
	// OwnCols[OwnBegin[u]:OwnEnd[u]] are the own vertices that gather from own
	// vertex u, ascending; OwnBegin and OwnEnd are [NumOwn].
	OwnBegin, OwnEnd []int64
	OwnCols          []uint32
	// Ghost has a row for each ghost: the own vertices that gather from it,
	// ascending.
	Ghost graph.CSR
	// Weights of OwnCols and of Ghost.Cols, nil where edges have none.
	OwnWeights, GhostWeights []float32
	// Where OwnCols and Ghost.Cols are in Shard.In.Cols, which is where the features of these
	// edges are; nil where edges have none, or OwnCols are In.Cols.
	OwnAt, GhostAt []int64
}

// Edges are edges into destinations 0..len(Begin)-1: those of v come from
// Cols[Begin[v]:End[v]], which are Base..Base+Sources-1.
type Edges struct {
	Begin, End    []int64
	Cols          []uint32
	Weights       []float32 // of Cols; nil: none
	Base, Sources int
	Featured      bool // edges have features, which lie as Cols do

	counted int // edges of a sketch, whose arrays do not say
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

// Transpose builds the transposed edges with arrays in a, ghosts being the edges
// from other ranks. In an undirected dataset an edge between two own vertices is
// there in both directions, so that the own part aliases s.In and costs nothing;
// it ends with s then.
func (s *Shard) Transpose(a *mapped.Arena, ghosts Edges) *Transposed {
	if s.Directed {
		return s.transpose(a, s.OwnEdges(), ghosts, anywhere)
	}
	own := s.OwnEdges()
	t := &Transposed{OwnBegin: own.Begin, OwnEnd: own.End, OwnCols: own.Cols, OwnWeights: own.Weights}
	t.Ghost, t.GhostWeights, t.GhostAt = ghosts.bySource(a, anywhere)
	return t
}

// TransposeInto is Transpose of the edges into own vertices of one split only,
// that of training vertices in a sketch. Nothing aliases s.In.
func (s *Shard) TransposeInto(a *mapped.Arena, ghosts Edges, split uint8) *Transposed {
	own := s.OwnEdges()
	if c := s.counts; c != nil {
		own.counted, ghosts.counted = int(c.TrainEdges-c.TrainCut), min(ghosts.counted, int(c.TrainCut))
	}
	return s.transpose(a, own, ghosts, func(v int) bool { return s.Split[v] == split })
}

// EdgesInto counts the edges into own vertices of one split, that of training
// vertices in a sketch.
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

// BySource has a row for each source: the destinations of its edges, ascending.
// Its arrays are in a.
func (e Edges) BySource(a *mapped.Arena) graph.CSR {
	t, _, _ := e.bySource(a, anywhere)
	return t
}

// bySource is BySource of the edges to the chosen destinations, their weights, and where
// those with features are in e.Cols.
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

// count sets offsets, which are zeros, to where the row of each source begins and
// returns the number of edges to the chosen destinations.
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

// sort fills the rows of t, whose offsets say where they begin, and their weights
// and places, unless these are none. Rows of e are visited in ascending order, which leaves the destinations of a source
// ascending.
func (e Edges) sort(t graph.CSR, weights []float32, at []int64, chosen func(v int) bool) {
	// offsets[r] is the cursor of row r while filling; afterwards it holds the
	// row's end, which is where the next one begins.
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
