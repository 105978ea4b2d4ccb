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
	vertexMask   kernels.VertexMask // of own vertices; nil: all are targets; empty in a sketch
	trainingOnly bool               // whether the backward pass has only edges into targets
}

// Gathers omit edges only if fewer than kept of keptOf remain, because the mask also takes time.
const keptOf, kept = 8, 7

// choose makes the training vertices the targets, if that leaves out enough edges.
func (t *targets) choose(s *shard.Shard, a *mapped.Arena) {
	if len(s.Split) > 0 && keptOf*s.EdgesInto(graph.SplitTrain) < kept*int64(len(s.In.Cols)) {
		t.vertexMask = kernels.VertexMask{}
		a.Fill(func() {
			t.vertexMask = kernels.NewVertexMask(s.NumOwn(), func(v int) bool { return s.Split[v] == graph.SplitTrain })
		})
	}
}

// maskEdges gives the last layer the bits of the edges into targets, unless its backward gather masks no plain
// columns. Other layers share its other arrays.
func (w *Work) maskEdges(l *Layer) {
	own := &l.edges.own
	_, maxima := l.Gather.(*maxima)
	attention, ok := l.Gather.(*attention)
	if l.vertexMask == nil || l.trainingOnly || own.Coded != nil || own.Weights.Len() > 0 || w.ops.Remote() ||
		maxima || ok && attention.shape.Dynamic {
		return
	}
	edges, a := *l.edges, w.arena.For(EdgeMasks)
	edges.own.EdgeMask = kernels.NewEdgeMask(a, own.Cols, l.vertexMask)
	edges.ghost.mask = kernels.NewEdgeMask(a, edges.ghost.cols, l.vertexMask)
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
