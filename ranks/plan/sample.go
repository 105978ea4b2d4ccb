package plan

import (
	"siafu/graph"
	"siafu/graph/shard"
	"siafu/kernels"
)

// sample is some rows of a graph.
type sample struct {
	rows int // of the graph
	graph.CSR
}

// blocks is how many runs of rows a sample has, so that hubs, which often stand
// together, get no more than their share; and blocksInOrder where vertices are in an order in which
// neighbours share what they gather, of which short runs know nothing.
const (
	blocks        = 64
	blocksInOrder = 8
)

// inOrder are the edges of a dataset among vertices in the order in which a rank has them: that of the shard
// of all, where the dataset has been partitioned for one rank and its own is not asked for, else its own.
// ordered tells which.
func inOrder(ds *graph.Dataset, asked string) (in graph.CSR, ordered bool, done func()) {
	if asked == "natural" {
		return ds.In, false, func() {}
	}
	s, err := shard.Open(ds.Dir, 1, 0)
	if err != nil { // none, or none of this dataset as it is now
		return ds.In, false, func() {}
	}
	return s.In, true, func() { s.Close() }
}

// newSample takes runs of rows from all over a graph, many and long ones of one that is in order, or that
// is gathered block by block at this width: a block is worth fetching for all that meet it, and an interval of such
// a graph is large.
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

// gather returns the sample as an operand, and the number of rows that it reads: all
// of the graph, or as many as are allowed of the given width, which are then
// read in the place of all others.
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
