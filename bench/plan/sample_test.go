package plan

import (
	"testing"

	"siafu/graph"
)

// A graph whose gathers go block by block is sampled by more edges, at the widths at which
// they do, and any other by as many as say what an edge takes.
func TestSampleOfBlocks(t *testing.T) {
	const rows, degree = 10000, 400
	g := graph.CSR{Offsets: make([]int64, rows+1), Cols: make([]uint32, rows*degree)}
	for v := range rows {
		g.Offsets[v+1] = int64(v+1) * degree
	}
	few, many := newSample(g, 16), newSample(g, 4096)
	if n := len(few.Cols); n > sampleEdges+blocks*degree {
		t.Errorf("%d edges for rows that all fit into a cache", n)
	}
	if n := len(many.Cols); n != len(g.Cols) {
		t.Errorf("%d edges of %d for rows by blocks", n, len(g.Cols))
	}
}
