package partition

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
)

// memory returns a small dataset without a folder.
func memory(n int, directed, sparse bool, edges [][2]uint32) *graph.Dataset {
	in, out := make([][]uint32, n), make([][]uint32, n)
	add := func(u, v uint32) {
		in[v], out[u] = append(in[v], u), append(out[u], v)
	}
	for _, e := range edges {
		if u, v := e[0], e[1]; u != v {
			add(u, v)
			if !directed {
				add(v, u)
			}
		}
	}
	d := &graph.Dataset{
		In: rows(in), Out: rows(out), Labels: make([]int32, n), Split: make([]uint8, n),
		Features: graph.Features{Rows: n, Dim: 3},
		Meta:     &graph.Meta{Vertices: int64(n), Directed: directed, FeatureDim: 3, Classes: 3},
	}
	if !directed {
		d.Out = d.In
	}
	if sparse {
		d.Features.Sparse = &graph.SparseRows{Offsets: []int64{0}}
	}
	for v := range n {
		d.Labels[v], d.Split[v] = int32(v%3), uint8(v*7%4)
		if f := d.Features.Sparse; f != nil {
			for c := range v % 3 {
				f.Cols, f.Vals = append(f.Cols, uint32(c)), append(f.Vals, float32(10*v+c))
			}
			f.Offsets = append(f.Offsets, int64(len(f.Cols)))
			continue
		}
		d.Features.Dense = append(d.Features.Dense, float32(v), float32(-v), 1)
	}
	return d
}

// rows returns the CSR of lists that may be unsorted and have duplicates.
func rows(lists [][]uint32) graph.CSR {
	c := graph.CSR{Offsets: []int64{0}}
	for _, l := range lists {
		slices.Sort(l)
		c.Cols = append(c.Cols, slices.Compact(l)...)
		c.Offsets = append(c.Offsets, int64(len(c.Cols)))
	}
	return c
}

// drawDataset returns a random graph with isolated vertices, and an owner for each vertex;
// some parts own nothing.
func drawDataset(t *rapid.T) (ds *graph.Dataset, owner, order []uint32, parts int) {
	n := rapid.IntRange(1, 40).Draw(t, "vertices")
	parts = rapid.IntRange(1, 7).Draw(t, "parts")
	id := rapid.Uint32Range(0, uint32(n-1))
	edges := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]uint32 {
		return [2]uint32{id.Draw(t, "src"), id.Draw(t, "dst")}
	}), 0, 3*n).Draw(t, "edges")
	owner = rapid.SliceOfN(rapid.Uint32Range(0, uint32(parts-1)), n, n).Draw(t, "owner")
	if rapid.Bool().Draw(t, "reordered") {
		for v := range n {
			order = append(order, uint32(v))
		}
		order = rapid.Permutation(order).Draw(t, "order")
	}
	ds = memory(n, rapid.Bool().Draw(t, "directed"), rapid.Bool().Draw(t, "sparse"), edges)
	if ds.Meta.Weighted = rapid.Bool().Draw(t, "weighted"); ds.Meta.Weighted {
		for v := range n {
			for _, u := range ds.In.Row(v) {
				ds.Weights = append(ds.Weights, weightOf(u, uint32(v)))
			}
		}
	}
	ds.Meta.EdgeDim = rapid.IntRange(0, 2).Draw(t, "edge features")
	for v := range n {
		for _, u := range ds.In.Row(v) {
			ds.EdgeFeatures = append(ds.EdgeFeatures, featuresOf(u, uint32(v), ds.Meta.EdgeDim)...)
		}
	}
	return ds, owner, order, parts
}

// featuresOf returns dim features of an edge.
func featuresOf(u, v uint32, dim int) []float32 { return []float32{weightOf(u, v), -float32(u)}[:dim] }

// weightOf returns the weight of an edge and of its reverse.
func weightOf(u, v uint32) float32 { return float32(min(u, v)) + 1/float32(2+max(u, v)) }

// cutAll returns all shards of ds, made in small blocks; free releases them.
func cutAll(ds *graph.Dataset, owner, order []uint32, parts int) (all []*shard.Shard, free func()) {
	c := newCarver(ds, owner, order, parts,
		shard.Shard{Vertices: ds.Meta.Vertices, Directed: ds.Meta.Directed, Weighted: ds.Meta.Weighted, EdgeDim: ds.Meta.EdgeDim})
	c.blockBytes = 100
	a := mapped.NewArena()
	for p := range parts {
		s := c.cut(a, p)
		for b := range c.blocks(s) {
			if len(b.Own) > 1 && bytesOf(b) > c.blockBytes {
				panic(fmt.Sprintf("a block of %d rows has %d bytes", len(b.Own), bytesOf(b)))
			}
			s.In.Cols = append(s.In.Cols, b.In.Cols...)
			s.Weights = append(s.Weights, b.Weights...)
			s.EdgeFeatures = append(s.EdgeFeatures, b.EdgeFeatures...)
			s.Features.Dense = append(s.Features.Dense, b.Features.Dense...)
			if x := s.Features.Sparse; x != nil {
				x.Cols, x.Vals = append(x.Cols, b.Features.Sparse.Cols...), append(x.Vals, b.Features.Sparse.Vals...)
			}
		}
		all = append(all, s)
	}
	return all, func() { a.Free(); c.arena.Free() }
}

// bytesOf returns the size of the arrays of a block.
func bytesOf(b *shard.Shard) int64 {
	floats := len(b.Weights) + len(b.EdgeFeatures) + len(b.Features.Dense)
	if x := b.Features.Sparse; x != nil {
		floats += 2 * len(x.Vals)
	}
	return 4 * int64(floats+len(b.In.Cols))
}

// The shards together are the graph: every vertex with its data, and every edge exactly once,
// on the rank that owns its destination.
func TestShardsAreTheGraph(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds, owner, order, parts := drawDataset(t)
		all, free := cutAll(ds, owner, order, parts)
		defer free()
		seen := make([]int, ds.In.Rows())
		for p, s := range all {
			ids := append(slices.Clone(s.Own), s.Ghosts...)
			for i, v := range s.Own {
				seen[v]++
				if owner[v] != uint32(p) {
					t.Fatalf("rank %d has vertex %d of rank %d", p, v, owner[v])
				}
				checkRow(t, ds, s, ids, i)
				checkValues(t, ds, s, i)
			}
			for i, v := range ids {
				if s.InDegree[i] != uint32(len(ds.In.Row(int(v)))) || s.OutDegree[i] != uint32(len(ds.Out.Row(int(v)))) {
					t.Fatalf("rank %d: degrees of vertex %d", p, v)
				}
				if ds.Meta.Weighted && (s.InStrength[i] != strengthOf(ds.In.Row(int(v)), v) ||
					s.OutStrength[i] != strengthOf(ds.Out.Row(int(v)), v)) {
					t.Fatalf("rank %d: strengths of vertex %d", p, v)
				}
			}
		}
		for v, times := range seen {
			if times != 1 {
				t.Fatalf("vertex %d is own %d times", v, times)
			}
		}
	})
}

// strengthOf returns the sum of the weights between v and others, in their order.
func strengthOf(others []uint32, v uint32) float32 {
	sum := 0.0
	for _, u := range others {
		sum += float64(weightOf(u, v))
	}
	return float32(sum)
}

// checkRow compares the in-edges of own vertex i with the graph's.
func checkRow(t *rapid.T, ds *graph.Dataset, s *shard.Shard, ids []uint32, i int) {
	row, own := s.In.Row(i), int(s.InOwnEnd[i]-s.In.Offsets[i])
	var got []uint32
	for j, u := range row {
		if (int(u) < len(s.Own)) != (j < own) {
			t.Fatalf("rank %d row %d: %v, own sources end at %d", s.Rank, i, row, own)
		}
		got = append(got, ids[u])
		if at := int(s.In.Offsets[i]) + j; ds.Meta.Weighted && s.Weights[at] != weightOf(ids[u], s.Own[i]) {
			t.Fatalf("rank %d row %d: weight %v from vertex %d", s.Rank, i, s.Weights[at], ids[u])
		}
	}
	dim := ds.Meta.EdgeDim
	mean := make([]float64, dim)
	for j, u := range row {
		want := featuresOf(ids[u], s.Own[i], dim)
		if at := int(s.In.Offsets[i]) + j; !slices.Equal(s.EdgeFeatures[at*dim:][:dim], want) {
			t.Fatalf("rank %d row %d: features %v from vertex %d", s.Rank, i, s.EdgeFeatures[at*dim:][:dim], ids[u])
		}
		for k, f := range want {
			mean[k] += float64(f) / float64(len(row))
		}
	}
	for k, want := range mean {
		if got := float64(s.EdgeMeans[i*dim+k]); math.Abs(got-want) > 1e-6*(1+math.Abs(want)) { // a rounding of float32
			t.Fatalf("rank %d row %d: mean %v, want %v", s.Rank, i, got, want)
		}
	}
	if !slices.IsSorted(row) {
		t.Fatalf("rank %d row %d is not sorted: %v", s.Rank, i, row)
	}
	slices.Sort(got)
	if !slices.Equal(got, ds.In.Row(int(s.Own[i]))) {
		t.Fatalf("rank %d: sources of %d are %v, expected %v", s.Rank, s.Own[i], got, ds.In.Row(int(s.Own[i])))
	}
}

// checkValues compares features, label and split of own vertex i.
func checkValues(t *rapid.T, ds *graph.Dataset, s *shard.Shard, i int) {
	v := int(s.Own[i])
	if s.Labels[i] != ds.Labels[v] || s.Split[i] != ds.Split[v] {
		t.Fatalf("label or split of vertex %d", v)
	}
	if got, want := featureRow(s.Features, i), featureRow(ds.Features, v); got != want {
		t.Fatalf("features of vertex %d: %s, expected %s", v, got, want)
	}
}

func featureRow(f graph.Features, i int) string {
	if x := f.Sparse; x != nil {
		lo, hi := x.Offsets[i], x.Offsets[i+1]
		return fmt.Sprint(x.Cols[lo:hi], x.Vals[lo:hi])
	}
	return fmt.Sprint(f.Dense[i*f.Dim : (i+1)*f.Dim])
}

// The rows that q sends to p are p's ghosts of q, in the same order. p gathers from all its
// ghosts.
func TestSendsMatchGhosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds, owner, order, parts := drawDataset(t)
		all, free := cutAll(ds, owner, order, parts)
		defer free()
		for p, s := range all {
			for q, from := range all {
				var sent []uint32
				for _, row := range from.SendRows[from.SendStart[p]:from.SendStart[p+1]] {
					sent = append(sent, from.Own[row])
				}
				if ghosts := s.Ghosts[s.GhostStart[q]:s.GhostStart[q+1]]; !slices.Equal(ghosts, sent) {
					t.Fatalf("rank %d has ghosts %v of rank %d, which sends %v", p, ghosts, q, sent)
				}
			}
			sources := map[uint32]bool{}
			for _, v := range s.Own {
				for _, u := range ds.In.Row(int(v)) {
					sources[u] = sources[u] || owner[u] != uint32(p)
				}
			}
			for _, g := range s.Ghosts {
				if !sources[g] {
					t.Fatalf("rank %d gathers nothing from its ghost %d", p, g)
				}
			}
		}
	})
}
