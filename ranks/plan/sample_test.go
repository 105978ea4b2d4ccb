package plan

import (
	"slices"
	"strings"
	"testing"

	"siafu/graph"
	"siafu/graph/partition"
)

// Edges are sampled in the order of the shard of all vertices, once there is one; before, a plan says that
// training will make one.
func TestSampleInOrder(t *testing.T) {
	o := options(t, func(o *Options) { o.Config.Ranks, o.Config.Servers, o.Config.VertexOrder = 1, 0, "rabbit" })
	saysOwnOrder := func() bool {
		t.Helper()
		p, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(strings.Join(p.Verdict, "\n"), "the dataset's own order of vertices")
	}
	if !saysOwnOrder() {
		t.Error("nothing is said of the order that training will make")
	}
	report, err := partition.Run(o.Data, partition.Options{Method: "contiguous", Order: "rabbit", Parts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if saysOwnOrder() {
		t.Error("the order that is there is said to be missing")
	}
	ds, err := graph.Open(o.Data)
	if err != nil {
		t.Fatal(err)
	}
	defer ds.Close()
	q := &request{Options: o, meta: ds.Meta}
	q.Config.VertexOrder = "natural"
	if in, ordered, done := q.inOrder(ds); ordered || !slices.Equal(in.Cols, ds.In.Cols) {
		t.Error("another order than the one that was asked for")
		done()
	}
	q.Config.VertexOrder = "rabbit"
	in, ordered, done := q.inOrder(ds)
	defer done()
	s := newSample(in, 16, ordered)
	if !ordered || slices.Equal(in.Cols, ds.In.Cols) || !slices.Equal(s.Cols, in.Cols) {
		t.Errorf("ordered %t; report %+v", ordered, report)
	}
}

// A graph whose gathers go block by block is sampled by more edges, at the widths at which
// they do, and any other by as many as say what an edge takes.
func TestSampleOfBlocks(t *testing.T) {
	const rows, degree = 10000, 400
	g := graph.CSR{Offsets: make([]int64, rows+1), Cols: make([]uint32, rows*degree)}
	for v := range rows {
		g.Offsets[v+1] = int64(v+1) * degree
	}
	few, many := newSample(g, 16, false), newSample(g, 4096, false)
	if n := len(few.Cols); n > sampleEdges+blocks*degree {
		t.Errorf("%d edges for rows that all fit into a cache", n)
	}
	if n := len(many.Cols); n != len(g.Cols) {
		t.Errorf("%d edges of %d for rows by blocks", n, len(g.Cols))
	}
}
