package importers

import (
	"slices"
	"testing"

	"siafu/graph"
)

// TestReverse: a relation gets one reverse, and keeps the one that the source has.
func TestReverse(t *testing.T) {
	x := &relational{of: graph.Relations{
		Kinds: []graph.VertexKind{{Name: "user", Vertices: 2}, {Name: "item", Vertices: 2}},
		Relations: []graph.Relation{{Name: "buys", To: 1, Inverse: -1}, {Name: "knows", Inverse: -1}, {Name: "sells", To: 1, Inverse: -1},
			{Name: "rev_buys", From: 1, Inverse: -1}, {Name: "rev_has", Inverse: -1}, {Name: "has", Inverse: -1}}},
		lists: []graph.EdgeSource{graph.EdgePairs{0, 1}, graph.EdgePairs{0, 1}, graph.EdgePairs{1, 0}, graph.EdgePairs{1, 0}}}
	o, of := Options{Log: func(string, ...any) {}}, &x.of
	x.addReverse(o)
	edges := of.WithReverse(x.each)
	var inverse []int
	for _, r := range of.Relations {
		inverse = append(inverse, r.Inverse)
	}
	if want := []int{3, -1, 6, 0, -1, -1, 2}; !slices.Equal(inverse, want) ||
		of.Relations[6].Name != "rev_sells" || !of.Relations[3].Reverse {
		t.Fatalf("inverses are %v, relations %+v", inverse, of.Relations)
	}
	var got [][3]int
	edges.EachRelation(func(s, d uint32, r uint16) error {
		got = append(got, [3]int{int(s), int(d), int(r)})
		return nil
	})
	if want := [][3]int{{0, 3, 0}, {3, 0, 3}, {0, 1, 1}, {1, 2, 2}, {2, 1, 6}, {3, 0, 3}}; !slices.Equal(got, want) {
		t.Errorf("edges are %v, want %v", got, want)
	}
	x.all = true
	if x.addReverse(o); len(of.Relations) != 8 || of.Relations[7].Name != "rev_knows" {
		t.Errorf("relations are %+v", of.Relations)
	}
}
