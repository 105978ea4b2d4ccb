package plan

import (
	"siafu/graph"
	"siafu/graph/shard"
	"siafu/kernels"
)

// sample has some rows of a graph.
type sample struct {
	rows int // of the graph
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
// Otherwise it is the dataset's order. ordered reports the first case.
func inOrder(ds *graph.Dataset, asked string) (in graph.CSR, ordered bool, done func()) {
	if asked == "natural" {
		return ds.In, false, func() {}
	}
	s, err := shard.Open(ds.Dir, 1, 0)
	if err != nil { // no shard, or that of an older dataset
		return ds.In, false, func() {}
	}
	return s.In, true, func() { s.Close() }
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
// fit.
func (s *sample) gather(width int) (kernels.Gather, int) {
	most := max(s.rows, 1)
	cols := s.Cols
	if limit := sampleBytes / 4 / width; most > limit {
		most = max(limit, s.Rows())
		cols = make([]uint32, len(s.Cols))
		for i, c := range s.Cols {
			cols[i] = c % uint32(most)
		}
	}
	n := s.Rows()
	return kernels.Gather{Begin: s.Offsets[:n], End: s.Offsets[1:], Cols: cols, SelfLoops: true}, most
}
