package graphwork

import (
	"siafu/graph"
	"siafu/graph/shard"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/model"
)

// targets are the vertices whose logits the loss reads. In the last layer, all other rows of the
// gradient are zeros, and a pass with Pass.Targets does not read their logits. Gathers omit the
// edges into them, and the results of training stay bitwise equal.
type targets struct {
	some         bool               // whether not all own vertices are targets
	vertexMask   kernels.VertexMask // of own vertices; nil: all are targets, or the arena is a sketch
	trainingOnly bool               // whether the backward pass has only edges into targets
}

// Gathers omit edges only if fewer than kept of keptOf remain, because the mask also takes time.
const keptOf, kept = 8, 7

// choose makes the training vertices the targets, if that leaves out enough edges.
func (t *targets) choose(s *shard.Shard, a *mapped.Arena) {
	t.some = len(s.Split) > 0 && keptOf*s.EdgesInto(graph.SplitTrain) < kept*int64(len(s.In.Cols))
	if t.some {
		a.Fill(func() {
			t.vertexMask = kernels.NewVertexMask(s.NumOwn(), func(v int) bool { return s.Split[v] == graph.SplitTrain })
		})
	}
}

// maskEdges gives the last layer its own edges by source, with the bits of the targets, if its gather masks plain
// columns. Other arrays are shared with other layers.
func (w *Work) maskEdges(l *Layer) {
	masks := false
	switch g := l.Gather.(type) {
	case *sums:
		masks = l.edges.own.Weights.Len() == 0
	case *attention:
		masks = !g.shape.Dynamic
	}
	if !masks || !l.some || l.trainingOnly || w.codesColumns() || w.ops.Remote() {
		return
	}
	edges, a := *l.edges, w.arena.For(EdgeMasks)
	edges.own.EdgeMask = kernels.NewEdgeMask(a, edges.own.Cols.Host(), l.vertexMask)
	edges.ghost.mask = kernels.NewEdgeMask(a, edges.ghost.cols.Host(), l.vertexMask)
	l.edges = &edges
}

// maskTargets returns the edges e into an interval's vertices without those that a pass omits.
func (t *targets) maskTargets(p model.Pass, e kernels.Edges) kernels.Edges {
	if p.Targets {
		e.RowMask = t.vertexMask
	}
	return e
}

// maskSources returns the edges e by source without those that the backward pass omits.
func (t *targets) maskSources(e kernels.Edges) kernels.Edges {
	if !t.trainingOnly {
		e.ColumnMask = t.vertexMask
	}
	return e
}
