package plan

import (
	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/fault"
	"siafu/internal/size"
	"siafu/kernels"
)

// sample has some rows of a graph.
type sample struct {
	rows   int // of the graph
	spread int // factor of the rows of the graph, if above 1 (--scale)
	graph.CSR
}

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
func (c *calibration) check() error {
	if c.ds.Verified() {
		return nil
	}
	for _, u := range c.s.Cols {
		if int64(u) >= c.ds.Meta.Vertices {
			return fault.New(fault.Data, op, c.ds.Dir, "an edge comes from vertex %d of %d", u, c.ds.Meta.Vertices).
				Then("import the dataset again")
		}
	}
	return c.ds.CheckRows(0, int(min(c.ds.Meta.Vertices, sampleRows)))
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
func newSample(g graph.CSR, width int, ordered bool) *sample {
	s, most, runs := &sample{rows: g.Rows(), CSR: graph.CSR{Offsets: []int64{0}}}, sampleEdges, int64(blocks)
	if ordered {
		most, runs = sampleInOrder, blocksInOrder
	}
	if kernels.InBlocks(s.rows, width, int64(len(g.Cols))) {
		most, runs = sampleOfBlocks, blocks
	}
	for b := range runs {
		lo, hi := int(b*int64(s.rows)/runs), int((b+1)*int64(s.rows)/runs)
		for v, taken := lo, 0; v < hi && taken < most/int(runs); v++ {
			s.Cols = append(s.Cols, g.Row(v)...)
			s.Offsets = append(s.Offsets, int64(len(s.Cols)))
			taken += len(g.Row(v))
		}
	}
	return s
}

// edges returns the number of edges, self loops included, and never 0.
func (s *sample) edges() float64 { return float64(max(len(s.Cols)+s.Rows(), 1)) }

// gather returns the sample as an operand, and the number of rows that it reads. If the graph's
// rows exceed sampleBytes at the given width, columns are reduced modulo the number of rows that
// fit. With a spread, columns are multiplied, so that they reach the rows of a larger graph.
func (s *sample) gather(width int) (kernels.Gather, int) {
	factor := uint64(max(s.spread, 1))
	if factor > 1 {
		factor |= 1 // without common factors with a power of two
	}
	most := size.Product(max(s.rows, 1), int(factor))
	cols := s.Cols
	if limit := sampleBytes / 4 / width; most > limit || factor > 1 {
		most = max(min(most, limit), s.Rows())
		cols = make([]uint32, len(s.Cols))
		for i, c := range s.Cols {
			cols[i] = uint32(uint64(c) * factor % uint64(most))
		}
	}
	n := s.Rows()
	return kernels.Gather{Begin: s.Offsets[:n], End: s.Offsets[1:], Cols: cols, SelfLoops: true}, most
}
