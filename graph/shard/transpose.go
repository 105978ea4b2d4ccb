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
	if s.Directed {
		return s.transpose(a, anywhere)
	}
	return &Transposed{
		OwnBegin: s.In.Offsets[:n], OwnEnd: s.InOwnEnd, OwnCols: s.In.Cols,
		Ghost: s.bySource(a, n, s.NumGhosts(), s.InOwnEnd, s.In.Offsets[1:], anywhere),
	}
}

// TransposeInto is Transpose of the edges into own vertices of one split only.
// Nothing aliases s.In.
func (s *Shard) TransposeInto(a *mapped.Arena, split uint8) *Transposed {
	return s.transpose(a, func(v int) bool { return s.Split[v] == split })
}

// EdgesInto counts the edges into own vertices of one split.
func (s *Shard) EdgesInto(split uint8) (edges int64) {
	for v, have := range s.Split {
		if have == split {
			edges += s.In.Offsets[v+1] - s.In.Offsets[v]
		}
	}
	return edges
}

func anywhere(int) bool { return true }

// transpose sorts the edges into the chosen own vertices by source.
func (s *Shard) transpose(a *mapped.Arena, chosen func(v int) bool) *Transposed {
	n := s.NumOwn()
	own := s.bySource(a, 0, n, s.In.Offsets[:n], s.InOwnEnd, chosen)
	return &Transposed{
		OwnBegin: own.Offsets[:n], OwnEnd: own.Offsets[1:], OwnCols: own.Cols,
		Ghost: s.bySource(a, n, s.NumGhosts(), s.InOwnEnd, s.In.Offsets[1:], chosen),
	}
}

// bySource sorts the edges In.Cols[begin[v]:end[v]] of the chosen own v, whose
// sources are base..base+rows-1, by source. Rows are visited in ascending order, which
// leaves the destinations of a source ascending.
func (s *Shard) bySource(a *mapped.Arena, base, rows int, begin, end []int64, chosen func(v int) bool) graph.CSR {
	offsets := mapped.Make[int64](a, rows+1)
	for v := range begin {
		if !chosen(v) {
			continue
		}
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
		if !chosen(v) {
			continue
		}
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
