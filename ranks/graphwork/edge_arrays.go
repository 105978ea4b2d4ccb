package graphwork

import (
	"siafu/internal/mapped"
	"siafu/kernels"
)

// VisitForward calls visit with the parts of arrays of edges that GatherOwn and GatherGhosts read for the
// vertices [lo, hi), and with the rows that they write. Only for layers that gather sums, in this
// process's memory.
func (l *Layer) VisitForward(lo, hi int, visit func([]byte)) {
	visitEdges(l.mesh.own, lo, hi, visit)
	visitRows(l.gathered, lo, hi, visit)
	l.visitSums(lo, hi, visit)
}

// VisitBackward is VisitForward for GatherBackward.
func (l *Layer) VisitBackward(lo, hi int, visit func([]byte)) {
	visitEdges(l.edges.own, lo, hi, visit)
	visitRows(l.backward, lo, hi, visit)
	l.visitSums(lo, hi, visit)
}

// visitSums visits the sums of slices that the gather of the last slice reads.
func (l *Layer) visitSums(lo, hi int, visit func([]byte)) {
	for k := range l.Slices() - 1 {
		visitRows(l.sliceSums(k), lo, hi, visit)
	}
}

// VisitSlice is VisitForward, or VisitBackward with back, for GatherSlice.
func (l *Layer) VisitSlice(lo, hi, k int, back bool, visit func([]byte)) {
	edges := l.mesh.own
	if back {
		edges = l.edges.own
	}
	visitEdges(edges, lo, hi, visit)
	visitRows(l.sliceSums(k), lo, hi, visit)
}

// ReadInOrder tells the system that intervals read the arrays of edges in ascending order.
func (w *Work) ReadInOrder() {
	for _, l := range w.layers {
		if l == nil {
			continue
		}
		visitEdges(l.mesh.own, 0, l.mesh.own.Rows(), mapped.Sequential)
		if l.edges != nil {
			visitEdges(l.edges.own, 0, l.edges.own.Rows(), mapped.Sequential)
		}
	}
}

// visitEdges visits the edges of rows [lo, hi). Edges from own vertices and from ghosts alternate in the
// arrays of a shard.
func visitEdges(e kernels.Edges, lo, hi int, visit func([]byte)) {
	if lo == hi {
		return
	}
	begin, end := e.Begin.Host()[lo:hi], e.End.Host()[lo:hi]
	visit(mapped.Bytes(begin))
	visit(mapped.Bytes(end))
	first, last := begin[0], end[len(end)-1]
	if e.Coded != nil {
		visit(e.Coded.Part(e.CodedFirst+lo, e.CodedFirst+hi))
	} else {
		visit(mapped.Bytes(e.Cols.Host()[first:last]))
	}
	if e.Weights.Len() > 0 {
		visit(mapped.Bytes(e.Weights.Host()[first:last]))
	}
}

func visitRows(m kernels.Mat, lo, hi int, visit func([]byte)) {
	if !m.IsNil() {
		visit(m.Part(lo, hi).HostBytes())
	}
}
