package pairs_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/pairs"
)

// random returns a dataset folder of a graph whose edges are drawn.
func random(t *testing.T, n, edges int, directed bool) string {
	rng := rand.New(rand.NewPCG(1, 1))
	c := graph.Content{
		Name: "random", Vertices: int64(n), Symmetrise: !directed, Labels: make([]int32, n), Split: make([]uint8, n),
		Features: graph.Features{Rows: n, Dim: 1, Dense: make([]float32, n)},
	}
	var ends graph.EdgePairs
	for range edges {
		ends = append(ends, rng.Uint32N(uint32(n)), rng.Uint32N(uint32(n)))
	}
	c.Edges = ends
	dir := filepath.Join(t.TempDir(), "random")
	if _, err := graph.Write(dir, c, false); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t *testing.T, dir string) *graph.Dataset {
	ds, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ds.Close() })
	return ds
}

// pairsOf returns the pairs of vertices with an edge, the lower first.
func pairsOf(ds *graph.Dataset) map[[2]uint32]bool {
	pairs := map[[2]uint32]bool{}
	for v := range uint32(ds.In.Rows()) {
		for _, u := range ds.In.Row(int(v)) {
			pairs[[2]uint32{min(u, v), max(u, v)}] = true
		}
	}
	return pairs
}

// Pairs with an edge are in the graph, held for validation or held for the test, each in
// one, as many as the shares say; what they are told from has no edge in the whole graph.
func TestEveryPairIsInOnePlace(t *testing.T) {
	for _, directed := range []bool{false, true} {
		dir, dst := random(t, 120, 900, directed), filepath.Join(t.TempDir(), "links")
		o := pairs.HoldOutOptions{Split: "70/10/20", Ranked: 30, Negatives: 50, Seed: 2}
		if _, err := pairs.HoldOut(dir, dst, o, false); err != nil {
			t.Fatal(err)
		}
		from, to := open(t, dir), open(t, dst)
		if f, m := from.Meta, to.Meta; m.SelfLoops != f.SelfLoops || m.Repeated != f.Repeated || m.SelfLoops == 0 {
			t.Errorf("%d self loops and %d repeated edges of the source, want %d and %d", m.SelfLoops, m.Repeated, f.SelfLoops, f.Repeated)
		}
		whole, left := pairsOf(from), pairsOf(to)
		h, done, err := graph.OpenHeldOut(dst)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		seen := len(left)
		for share, held := range map[float64]graph.Held{0.1: h.Val, 0.2: h.Test} {
			if got, want := held.Edges.Len(), int(share*float64(len(whole))); got != want || held.Not.Len() != 50 {
				t.Errorf("%d held edges, want %d; %d without", got, want, held.Not.Len())
			}
			has := func(list map[[2]uint32]bool, u, v uint32) bool { return list[[2]uint32{min(u, v), max(u, v)}] }
			for i, u := range held.Edges.Src {
				v := held.Edges.Dst[i]
				if !has(whole, u, v) || has(left, u, v) {
					t.Errorf("%d-%d is held, an edge of the whole graph %t, of what is left %t", u, v, has(whole, u, v), has(left, u, v))
				}
				left[[2]uint32{min(u, v), max(u, v)}] = true // nobody else may hold it
				candidates, found := held.Each[30*i:30*i+30], map[uint32]bool{}
				for _, x := range candidates {
					if found[x] {
						t.Errorf("%d is ranked twice beside the edge of %d to %d", x, u, v)
					}
					if found[x] = true; x == u || has(whole, u, x) {
						t.Errorf("%d is ranked beside the edge of %d to %d", x, u, v)
					}
				}
			}
			for i, u := range held.Not.Src {
				if v := held.Not.Dst[i]; u == v || has(whole, u, v) {
					t.Errorf("%d-%d is an edge", u, v)
				}
			}
			seen += held.Edges.Len()
		}
		if seen != len(whole) {
			t.Errorf("%d pairs, want %d", seen, len(whole))
		}
	}
}

// Of a vertex with fewer candidates than requested, each is ranked once.
func TestAllCandidatesOfSmallGraphs(t *testing.T) {
	dir, dst := random(t, 60, 400, false), filepath.Join(t.TempDir(), "links")
	if _, err := pairs.HoldOut(dir, dst, pairs.HoldOutOptions{Split: "70/10/20", Ranked: 100, Negatives: 20, Seed: 2}, false); err != nil {
		t.Fatal(err)
	}
	whole := pairsOf(open(t, dir))
	h, done, err := graph.OpenHeldOut(dst)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	for i, u := range h.Test.Edges.Src {
		each := h.Test.Each[100*i : 100*i+100]
		each = slices.Clone(each[:graph.Candidates(each, h.Test.Edges.Dst[i])])
		slices.Sort(each)
		var want []uint32
		for v := range uint32(60) {
			if v != u && !whole[[2]uint32{min(u, v), max(u, v)}] {
				want = append(want, v)
			}
		}
		if !slices.Equal(each, want) {
			t.Errorf("%d has the candidates %d, want %d", u, each, want)
		}
	}
}

// What cannot be held out is refused with a remedy, and nobody draws for ever.
func TestRefusals(t *testing.T) {
	sparse, full := random(t, 60, 100, false), random(t, 8, 900, false)
	for _, r := range []struct {
		dir  string
		o    pairs.HoldOutOptions
		want string
	}{
		{sparse, pairs.HoldOutOptions{Split: "85/15"}, "as 85/5/10"},
		{sparse, pairs.HoldOutOptions{Split: "85/5/20"}, "as 85/5/10"},
		{sparse, pairs.HoldOutOptions{Split: "100/0/0"}, "as 85/5/10"},
		{sparse, pairs.HoldOutOptions{Split: "85/5/x"}, "as 85/5/10"},
		{sparse, pairs.HoldOutOptions{Split: "85/5/10", Ranked: -1}, "0 or more"},
		{sparse, pairs.HoldOutOptions{Split: "98/1/1"}, "set larger percentages"},
		{sparse, pairs.HoldOutOptions{Split: "85/5/10", Negatives: 1e6}, "set a smaller --negatives"},
		{full, pairs.HoldOutOptions{Split: "60/20/20"}, "set a smaller --negatives"},
	} {
		_, err := pairs.HoldOut(r.dir, filepath.Join(t.TempDir(), "links"), r.o, false)
		if !strings.Contains(fmt.Sprint(err), r.want) {
			t.Errorf("%+v: it says %v, want %q", r.o, err, r.want)
		}
	}
}

// What is left of the edges keeps its weights and features.
func TestWhatIsLeftKeepsFeatures(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		n := 60
		var ends graph.EdgePairs
		for u := range uint32(n) {
			for d := range uint32(5) {
				ends = append(ends, u, (u+d+1)%uint32(n))
			}
		}
		var edges graph.EdgeSource = ends
		if weighted {
			edges = heavy{ends}
		}
		c := graph.Content{
			Name: "ring", Vertices: int64(n), Labels: make([]int32, n), Split: make([]uint8, n),
			Features: graph.Features{Rows: n, Dim: 1, Dense: make([]float32, n)},
			Edges: graph.WithFeatures(edges, 2, func(yield func(src, dst uint32, weight float32, features []float32) error) error {
				return ends.Each(func(src, dst uint32) error {
					return yield(src, dst, float32(src+1), []float32{float32(src), float32(dst)})
				})
			}),
		}
		dir, dst := filepath.Join(t.TempDir(), "ring"), filepath.Join(t.TempDir(), "links")
		if _, err := graph.Write(dir, c, false); err != nil {
			t.Fatal(err)
		}
		if _, err := pairs.HoldOut(dir, dst, pairs.HoldOutOptions{Split: "70/10/20", Seed: 2}, false); err != nil {
			t.Fatal(err)
		}
		ds := open(t, dst)
		if ds.Meta.Name != "links" || int(ds.Meta.Edges) >= len(ends)/2 || ds.Meta.EdgeDim != 2 || ds.Meta.Weighted != weighted {
			t.Fatalf("%+v", ds.Meta)
		}
		for v := range n {
			for i := ds.In.Offsets[v]; i < ds.In.Offsets[v+1]; i++ {
				u := float32(ds.In.Cols[i])
				if f := ds.EdgeFeatures[2*i:]; f[0] != u || f[1] != float32(v) || weighted && ds.Weights[i] != u+1 {
					t.Errorf("edge %v → %d has the features %v", u, v, f[:2])
				}
			}
		}
	}
}

// heavy gives edges the weight of their source.
type heavy struct{ graph.EdgePairs }

// EachWeight implements graph.WeightedSource.
func (h heavy) EachWeight(yield func(src, dst uint32, weight float32) error) error {
	return h.Each(func(src, dst uint32) error { return yield(src, dst, float32(src+1)) })
}
