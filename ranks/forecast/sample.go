package forecast

import (
	"siafu/graph"
	"siafu/internal/size"
	"siafu/kernels"
)

// Sample has the edges into some rows of a graph, along which gathers are measured.
type Sample struct {
	Graph  int   // rows of the graph
	Spread int   // factor of the rows of the graph, if above 1
	Bytes  int64 // of the rows that a measured gather reads, at most
	graph.CSR
}

// edges returns the number of edges, self loops included, and never 0.
func (s *Sample) edges() float64 { return float64(max(len(s.Cols)+s.Rows(), 1)) }

// gather returns the sample as an operand, and the number of rows that it reads. If the graph's
// rows exceed Bytes at the given width, columns are reduced modulo the number of rows that
// fit. With a spread, columns are multiplied, so that they reach the rows of a larger graph.
func (s *Sample) gather(width int) (kernels.Gather, int) {
	factor := uint64(max(s.Spread, 1))
	if factor > 1 {
		factor |= 1 // without common factors with a power of two
	}
	most := size.Product(max(s.Graph, 1), int(factor))
	cols := s.Cols
	if limit := int(s.Bytes) / 4 / width; most > limit || factor > 1 {
		most = max(min(most, limit), s.Rows())
		cols = make([]uint32, len(s.Cols))
		for i, c := range s.Cols {
			cols[i] = uint32(uint64(c) * factor % uint64(most))
		}
	}
	n := s.Rows()
	return kernels.Gather{Begin: s.Offsets[:n], End: s.Offsets[1:], Cols: cols, SelfLoops: true}, most
}
