package shard

import (
	"siafu/graph"
	"siafu/graph/mapped"
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
}

// Transpose builds the transposed edges with arrays in a. In an undirected
// dataset an edge between two own vertices is there in both directions, so
// that the own part aliases s.In and costs nothing; it ends with s then.
func (s *Shard) Transpose(a *mapped.Arena) *Transposed {
	n := s.NumOwn()
	t := &Transposed{Ghost: s.bySource(a, n, s.NumGhosts(), s.InOwnEnd, s.In.Offsets[1:])}
	if !s.Directed {
		t.OwnBegin, t.OwnEnd, t.OwnCols = s.In.Offsets[:n], s.InOwnEnd, s.In.Cols
		return t
	}
	own := s.bySource(a, 0, n, s.In.Offsets[:n], s.InOwnEnd)
	t.OwnBegin, t.OwnEnd, t.OwnCols = own.Offsets[:n], own.Offsets[1:], own.Cols
	return t
}

// bySource sorts the edges In.Cols[begin[v]:end[v]] of all own v, whose sources
// are base..base+rows-1, by source. Rows are visited in ascending order, which
// leaves the destinations of a source ascending.
func (s *Shard) bySource(a *mapped.Arena, base, rows int, begin, end []int64) graph.CSR {
	offsets := mapped.Make[int64](a, rows+1)
	for v := range begin {
		for _, u := range s.In.Cols[begin[v]:end[v]] {
			offsets[int(u)-base+1]++
		}
	}
	for r := range rows {
		offsets[r+1] += offsets[r]
	}
	cols := mapped.Make[uint32](a, int(offsets[rows]))
	// offsets[r] is the cursor of row r while filling; afterwards it holds the
	// row's end, which is where the next one begins.
	for v := range begin {
		for _, u := range s.In.Cols[begin[v]:end[v]] {
			r := int(u) - base
			cols[offsets[r]] = uint32(v)
			offsets[r]++
		}
	}
	copy(offsets[1:], offsets)
	offsets[0] = 0
	return graph.CSR{Offsets: offsets, Cols: cols}
}
