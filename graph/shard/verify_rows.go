package shard

import (
	"slices"

	"siafu/graph"
	"siafu/internal/arrayfile"
	"siafu/internal/mapped"
)

// edges checks the rows of In. It also checks that each ghost is the source of an edge.
func (v *verifier) edges() error {
	s := v.s
	n, all := int64(len(s.Own)), int64(len(s.InDegree))
	a := mapped.NewArena()
	defer a.Free()
	used := mapped.Make[bool8](a, len(s.Ghosts))
	piece := int64(0)
	for r, mid := range s.InOwnEnd {
		lo, hi := s.In.Offsets[r], s.In.Offsets[r+1]
		if lo-piece >= arrayfile.Piece/4 {
			s.ForgetColumns(s.In.Cols[piece:lo])
			piece = lo
		}
		if mid < lo || mid > hi {
			return v.bad("%s: %d at position %d, expected %d to %d", nInOwnEnd, mid, r, lo, hi)
		}
		if err := v.sources(r, lo, mid, 0, n); err != nil {
			return err
		}
		if err := v.sources(r, mid, hi, n, all); err != nil {
			return err
		}
		for _, u := range s.In.Cols[mid:hi] {
			used[int64(u)-n] = 1
		}
	}
	for g, u := range used {
		if u == 0 {
			return v.bad("%s: no own vertex gathers from position %d", nGhosts, g)
		}
	}
	return nil
}

// sources checks the sources of vertex r at the positions lo to hi-1, which have local ids from least to
// most-1: they ascend, within each relation if there are relations, and do not include the vertex.
func (v *verifier) sources(r int, lo, hi, least, most int64) error {
	s := v.s
	for lo < hi {
		end := hi
		if v.relations >= 0 {
			relation := s.Relations[lo]
			if int(relation) >= v.relations {
				return v.bad("%s: %d at position %d", nRelations, relation, lo)
			}
			for end = lo + 1; end < hi && s.Relations[end] == relation; end++ {
			}
		}
		if err := v.ascending(nInCols, lo, s.In.Cols[lo:end], least, most); err != nil {
			return err
		}
		if i, self := slices.BinarySearch(s.In.Cols[lo:end], uint32(r)); self {
			return v.bad("%s: self loop of %d at position %d", nInCols, r, lo+int64(i))
		}
		if end < hi && s.Relations[end] < s.Relations[lo] {
			return v.bad("%s: %d at position %d after %d", nRelations, s.Relations[end], end, s.Relations[lo])
		}
		lo = end
	}
	return nil
}

// bool8 is a flag in mapped memory.
type bool8 uint8

// degrees checks the properties of degrees that one shard shows. The in-degree of an own vertex is
// the length of its row. A ghost has at least one out-edge. All degrees are below the number of
// vertices, unless the graph is relational. In an undirected graph, in-degree and out-degree are equal.
func (v *verifier) degrees() error {
	s := v.s
	n := len(s.Own)
	for u, in := range s.InDegree {
		out := s.OutDegree[u]
		switch {
		case u < n && int64(in) != s.In.Offsets[u+1]-s.In.Offsets[u]:
			return v.bad("%s: %d at position %d, but %d edges", nInDegree, in, u, s.In.Offsets[u+1]-s.In.Offsets[u])
		case u >= n && out == 0:
			return v.bad("%s: 0 at position %d, a ghost", nOutDegree, u)
		case v.relations < 0 && int64(in) >= s.Vertices:
			return v.bad("%s: %d at position %d in a graph of %d vertices", nInDegree, in, u, s.Vertices)
		case v.relations < 0 && int64(out) >= s.Vertices:
			return v.bad("%s: %d at position %d in a graph of %d vertices", nOutDegree, out, u, s.Vertices)
		case !s.Directed && in != out:
			return v.bad("%s: %d at position %d, but %d edges lead in and the graph is undirected", nOutDegree, out, u, in)
		}
	}
	return nil
}

// weights checks that all weights are finite and above 0. The strength of a vertex must be finite and
// above 0 if the vertex has edges, and 0 if it has none.
func (v *verifier) weights() error {
	s := v.s
	if !s.Weighted {
		return nil
	}
	if i := graph.BadWeight(s.Weights); i >= 0 {
		return v.bad("%s: %v at position %d", nWeights, s.Weights[i], i)
	}
	for _, a := range []struct {
		name   string
		sums   []float32
		degree []uint32
	}{{nInStrength, s.InStrength, s.InDegree}, {nOutStrength, s.OutStrength, s.OutDegree}} {
		for u, sum := range a.sums {
			if d := a.degree[u]; d == 0 && sum != 0 || d > 0 && graph.BadWeight(a.sums[u:u+1]) >= 0 {
				return v.bad("%s: %v at position %d, where there are %d edges", a.name, sum, u, d)
			}
		}
	}
	return nil
}

// edgeFeatures checks that edge features and their means are finite.
func (v *verifier) edgeFeatures() error {
	for name, values := range map[string][]float32{nEdgeFeatures: v.s.EdgeFeatures, nEdgeMeans: v.s.EdgeMeans} {
		if i := slices.IndexFunc(values, graph.NotFinite); i >= 0 {
			return v.bad("%s: %v at position %d", name, values[i], i)
		}
	}
	return nil
}

func (v *verifier) features() error {
	f := v.s.Features
	if f.Sparse == nil {
		// identity has checked that Dim is not negative. The division avoids the product Rows x Dim,
		// which may overflow.
		name, n := nDense, len(f.Dense)
		if f.Half != nil {
			name, n = nHalf, len(f.Half)
		}
		if f.Dim > 0 && (n%f.Dim != 0 || n/f.Dim != f.Rows) || f.Dim == 0 && n != 0 {
			return v.bad("%s: %d values instead of %d x %d", name, n, f.Rows, f.Dim)
		}
		return nil
	}
	return v.sparse(f.Sparse, f.Rows, f.Dim)
}

func (v *verifier) sparse(m *graph.SparseRows, rows, dim int) error {
	if len(m.Offsets) != rows+1 {
		return v.bad("%s: %d values instead of %d", nSparseOffsets, len(m.Offsets), rows+1)
	}
	if len(m.Vals) != len(m.Cols) {
		return v.bad("%s: %d values for %d columns", nSparseVals, len(m.Vals), len(m.Cols))
	}
	if err := v.monotonic(nSparseOffsets, m.Offsets, len(m.Cols)); err != nil {
		return err
	}
	for r := range rows {
		lo, hi := m.Offsets[r], m.Offsets[r+1]
		if err := v.ascending(nSparseCols, lo, m.Cols[lo:hi], 0, int64(dim)); err != nil {
			return err
		}
	}
	return nil
}

// targets checks labels and split. A vertex in a split must have a label, except in the task Links.
func (v *verifier) targets() error {
	s := v.s
	for u, label := range s.Labels {
		if label != graph.Unlabelled && (label < 0 || int64(label) >= int64(s.Classes)) {
			return v.bad("%s: %d at position %d, but %d classes", nLabels, label, u, s.Classes)
		}
		if s.Split[u] > graph.SplitTest {
			return v.bad("%s: %d at position %d, expected 0 to %d", nSplit, s.Split[u], u, graph.SplitTest)
		}
		if s.Split[u] != graph.SplitNone && label == graph.Unlabelled && v.task != graph.Links {
			return v.bad("%s: position %d is in split %d and has no label", nLabels, u, s.Split[u])
		}
	}
	if at, why := graph.BadTarget(v.task, s.Targets, s.Classes, s.Labels); why != "" {
		return v.bad("%s: %v at position %d: %s", nTargets, s.Targets[at], at, why)
	}
	return nil
}
