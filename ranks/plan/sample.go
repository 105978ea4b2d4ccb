package plan

import (
	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/kernels"
	"siafu/ranks/forecast"
)

// Bounds of a sample, in edges.
const (
	sampleEdges    = 1 << 21
	sampleInOrder  = 1 << 23 // in a vertex order
	sampleOfBlocks = 1 << 25 // if the gather is blocked
)

// The number of runs of consecutive rows in a sample. Hubs are often adjacent, so many runs keep
// their fraction right. An ordered graph needs fewer and longer runs, because its neighbouring
// rows gather the same rows.
const (
	blocks        = 64
	blocksInOrder = 8
)

// inOrder returns the in-edges of a dataset in the vertex order of a rank. This is the order of
// the shard if the dataset is partitioned for one rank and the natural order is not requested.
// Otherwise it is the dataset's order, and also if the dataset is too large to verify the shard. ordered
// reports the first case.
func (q *request) inOrder(ds *graph.Dataset) (in graph.CSR, ordered bool, done func()) {
	m := q.made("", 1)
	if q.Config.VertexOrder == "natural" || m == nil {
		return ds.In, false, func() {}
	}
	if m.Report.Order.Name == "natural" || !ds.Verified() {
		return ds.In, m.Report.Order.Name == "natural", func() {}
	}
	s, err := shard.Open(ds.Dir, 1, 0)
	if err != nil { // no shard, or that of an older dataset
		return ds.In, false, func() {}
	}
	return s.In, true, func() { s.Close() }
}

// check verifies the rows that measurements read, if the dataset has not been verified.
func (c *calibration) check(ds *graph.Dataset) error {
	if ds.Verified() {
		return nil
	}
	for _, u := range c.Sample.Cols {
		if int64(u) >= ds.Meta.Vertices {
			return fault.New(fault.Data, op, ds.Dir, "an edge comes from vertex %d of %d", u, ds.Meta.Vertices).
				Then("import the dataset again")
		}
	}
	return ds.CheckRows(0, c.Rows)
}

// sampleCodedBits estimates the bits per edge of coded columns from rows of the graph, in the order of a rank if
// it is known.
func (q *request) sampleCodedBits(ds *graph.Dataset) float64 {
	in, _, done := q.inOrder(ds)
	defer done()
	g := kernels.Gather{Begin: in.Offsets[:in.Rows()], End: in.Offsets[1:], Cols: in.Cols}
	return kernels.EstimateCodedBits(g.Edges())
}

// newSample takes runs of rows from all of a graph. An ordered graph needs long runs. A blocked
// gather at this width needs a large sample, because all rows that use a block share the cost of
// loading it.
func newSample(g graph.CSR, width int, ordered bool) *forecast.Sample {
	s, most, runs := &forecast.Sample{Graph: g.Rows(), Bytes: sampleBytes, CSR: graph.CSR{Offsets: []int64{0}}}, sampleEdges, int64(blocks)
	if ordered {
		most, runs = sampleInOrder, blocksInOrder
	}
	if kernels.InBlocks(s.Graph, width, int64(len(g.Cols))) {
		most, runs = sampleOfBlocks, blocks
	}
	for b := range runs {
		lo, hi := int(b*int64(s.Graph)/runs), int((b+1)*int64(s.Graph)/runs)
		for v, taken := lo, 0; v < hi && taken < most/int(runs); v++ {
			s.Cols = append(s.Cols, g.Row(v)...)
			s.Offsets = append(s.Offsets, int64(len(s.Cols)))
			taken += len(g.Row(v))
		}
	}
	return s
}
