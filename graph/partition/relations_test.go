package partition_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"siafu/graph"
	"siafu/graph/generate"
	"siafu/graph/partition"
	"siafu/graph/shard"
)

// related yields edges with relations.
type related [][3]uint32

func (e related) Each(yield func(src, dst uint32) error) error {
	return e.EachRelation(func(s, d uint32, _ uint16) error { return yield(s, d) })
}

func (e related) EachRelation(yield func(src, dst uint32, relation uint16) error) error {
	for _, x := range e {
		if err := yield(x[0], x[1], uint16(x[2])); err != nil {
			return err
		}
	}
	return nil
}

// randomRelated returns a relational graph of two kinds with repeated edges, edges of several relations
// between two vertices, isolated vertices and an empty relation.
func randomRelated(seed uint64) graph.Content {
	r := rand.New(rand.NewPCG(seed, 0))
	users, items := 20+r.IntN(20), 10+r.IntN(10)
	n := users + items
	of := &graph.Relations{
		Kinds: []graph.VertexKind{{Name: "user", Vertices: int64(users), Features: 2},
			{Name: "item", Vertices: int64(items), FirstFeature: 2, Features: 1}},
		Relations: []graph.Relation{{Name: "knows", To: 0, Inverse: -1}, {Name: "buys", To: 1, Inverse: -1},
			{Name: "none", From: 1, To: 1, Inverse: -1}, {Name: "likes", To: 1, Inverse: -1}},
	}
	back := uint32(of.AddReverse(1))
	var edges related
	for range 4 * n {
		u, v := uint32(r.IntN(users)), uint32(r.IntN(users))
		item := uint32(users + r.IntN(items-1))
		edges = append(edges, [3]uint32{u, v, 0}, [3]uint32{u, item, 1}, [3]uint32{item, u, back})
		if r.IntN(2) == 0 {
			edges = append(edges, [3]uint32{u, item, 3}, [3]uint32{u, item, 1})
		}
	}
	c := graph.Content{Vertices: int64(n), Edges: edges, Relations: of, Labels: make([]int32, n), Split: make([]uint8, n),
		Features: graph.Features{Rows: n, Dim: 3, Dense: make([]float32, 3*n)}}
	return c
}

// TestRelations checks that a dataset and its shards have the edges of a relational graph, once each.
func TestRelations(t *testing.T) {
	for seed := range uint64(8) {
		c := randomRelated(seed)
		dir := filepath.Join(t.TempDir(), fmt.Sprint(seed))
		c.EdgeMemory = 100 // many windows
		if _, err := graph.Write(dir, c, false); err != nil {
			t.Fatal(err)
		}
		ds, err := graph.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		want := map[[3]uint32]bool{}
		for _, e := range c.Edges.(related) {
			if e[0] != e[1] {
				want[e] = true
			}
		}
		counts := make([]int64, len(c.Relations.Relations))
		for e := range want {
			counts[e[2]]++
		}
		for r, x := range ds.Meta.Relations.Relations {
			if x.Edges != counts[r] {
				t.Errorf("relation %d has %d edges, want %d", r, x.Edges, counts[r])
			}
		}
		check := func(what string, have [][3]uint32) {
			t.Helper()
			for _, e := range have {
				if !want[e] {
					t.Fatalf("%s has the edge %v", what, e)
				}
			}
			slices.SortFunc(have, func(a, b [3]uint32) int { return slices.Compare(a[:], b[:]) })
			if all := slices.Compact(have); len(all) != len(want) || len(all) != len(have) {
				t.Fatalf("%s has %d edges, %d of them distinct, want %d", what, len(have), len(all), len(want))
			}
		}
		var all [][3]uint32
		for v := range ds.In.Rows() {
			for i := ds.In.Offsets[v]; i < ds.In.Offsets[v+1]; i++ {
				all = append(all, [3]uint32{ds.In.Cols[i], uint32(v), uint32(ds.Relations[i])})
			}
		}
		check("the dataset", all)
		for _, parts := range []int{1, 2, 3} {
			if _, err := partition.Run(dir, partition.Options{Parts: parts, Method: "hash"}); err != nil {
				t.Fatal(err)
			}
			all = all[:0]
			for rank := range parts {
				s, err := shard.Open(dir, parts, rank)
				if err != nil {
					t.Fatal(err)
				}
				ids := slices.Concat(s.Own, s.Ghosts)
				for v := range s.Own {
					for i := s.In.Offsets[v]; i < s.In.Offsets[v+1]; i++ {
						all = append(all, [3]uint32{ids[s.In.Cols[i]], ids[v], uint32(s.Relations[i])})
					}
				}
				s.Close()
			}
			check(fmt.Sprint(parts, " shards"), all)
		}
	}
}

// TestBadRelations checks that Write refuses edges that contradict their relations.
func TestBadRelations(t *testing.T) {
	for name, change := range map[string]func(c *graph.Content){
		"kind of an edge":         func(c *graph.Content) { c.Edges = related{{0, 1, 1}} },
		"number of a relation":    func(c *graph.Content) { c.Edges = related{{0, 1, 9}} },
		"number of vertices":      func(c *graph.Content) { c.Relations.Kinds[0].Vertices++ },
		"features of a kind":      func(c *graph.Content) { c.Relations.Kinds[1].Features = 2 },
		"kinds of a relation":     func(c *graph.Content) { c.Relations.Relations[0].From = 2 },
		"edges without relations": func(c *graph.Content) { c.Edges = plain{c.Edges} },
	} {
		c := randomRelated(1)
		change(&c)
		if _, err := graph.Write(filepath.Join(t.TempDir(), "x"), c, false); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

type plain struct{ graph.EdgeSource }

// TestRelationsAreBalanced: multilevel parts of a relational graph have at most 1.1 times the mean of training vertices,
// rounded up to a whole vertex, and 1.05 times that of vertices and edges. One kind has all labels, in mag240m on 1 of
// 100 vertices of this kind.
func TestRelationsAreBalanced(t *testing.T) {
	for _, c := range []struct {
		like  string
		scale float64
	}{{"ogbn-mag", 0.01}, {"mag240m", 0.0001}} {
		dir := filepath.Join(t.TempDir(), c.like)
		if _, err := generate.Write(dir, generate.Options{Like: c.like, Scale: c.scale, Seed: 1}, false); err != nil {
			t.Fatal(err)
		}
		ds, err := graph.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer ds.Close()
		for _, parts := range []int{2, 4, 8} {
			o := partition.Options{Parts: parts, Method: "multilevel"}
			owner, err := partition.Assign(ds, o)
			if err != nil {
				t.Fatal(err)
			}
			mean := float64(ds.Meta.Train) / float64(parts)
			b := partition.Count(ds, owner, o).Balance
			if math.Round(b.Train*mean) > math.Ceil(1.1*mean) || b.Edges > 1.051 || b.Vertices > 1.051 {
				t.Errorf("%s, %d parts: %+v", c.like, parts, b)
			}
		}
	}
}
