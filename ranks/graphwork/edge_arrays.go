package graphwork

import (
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Visit is called with a part of an array before the part is read, and whether it may be written.
type Visit func(part []byte, write bool)

// VisitGather calls visit with the parts of arrays of edges that GatherOwn and GatherGhosts, or with back
// GatherBackward, read for the vertices [lo, hi), and with the rows that they write. Only in this process's
// memory.
func (l *Layer) VisitGather(lo, hi int, back bool, visit Visit) {
	if back {
		visitRows(l.backward, lo, hi, true, visit)
	} else {
		visitRows(l.gathered, lo, hi, true, visit)
	}
	l.visitEdges(lo, hi, back, visit)
	if g, ok := l.Gather.(*sums); ok {
		g.visitSlices(lo, hi, visit)
	}
}

// visitSlices visits the sums of other slices that the last slice reads.
func (s *sums) visitSlices(lo, hi int, visit Visit) {
	if own, ok := s.own.(*sliced); ok {
		for k := range own.last() {
			visitRows(own.sums(k), lo, hi, false, visit)
		}
	}
}

// VisitSlice is VisitGather for GatherSlice.
func (l *Layer) VisitSlice(lo, hi, k int, back bool, visit Visit) {
	l.visitEdges(lo, hi, back, visit)
	visitRows(l.Gather.(*sums).own.(*sliced).sums(k), lo, hi, true, visit)
}

func (l *Layer) visitEdges(lo, hi int, back bool, visit Visit) {
	if l.relational {
		return // its arrays are not in files
	}
	edges := l.mesh.own
	if back {
		edges = l.edges.own
	}
	visitEdges(edges, lo, hi, visit)
}

// ReadInOrder tells the system that intervals read the arrays of edges in ascending order.
func (w *Work) ReadInOrder() {
	sequential := func(part []byte, _ bool) { mapped.Sequential(part) }
	for _, l := range w.layers {
		if l == nil {
			continue
		}
		visitEdges(l.mesh.own, 0, l.mesh.own.Rows(), sequential)
		if l.edges != nil {
			visitEdges(l.edges.own, 0, l.edges.own.Rows(), sequential)
		}
	}
}

// visitEdges visits the edges of rows [lo, hi). Edges from own vertices and from ghosts alternate in the
// arrays of a shard.
func visitEdges(e kernels.Edges, lo, hi int, visit Visit) {
	if lo == hi {
		return
	}
	begin, end := e.Begin.Host()[lo:hi], e.End.Host()[lo:hi]
	visit(mapped.Bytes(begin), false)
	visit(mapped.Bytes(end), false)
	first, last := begin[0], end[len(end)-1]
	if e.Coded != nil {
		visit(e.Coded.Part(e.CodedFirst+lo, e.CodedFirst+hi), false)
	} else {
		visit(mapped.Bytes(e.Cols.Host()[first:last]), false)
	}
	if e.Weights.Len() > 0 {
		visit(mapped.Bytes(e.Weights.Host()[first:last]), false)
	}
}

func visitRows(m kernels.Mat, lo, hi int, write bool, visit Visit) {
	if !m.IsNil() {
		visit(m.Part(lo, hi).HostBytes(), write)
	}
}
