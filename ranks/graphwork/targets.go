package graphwork

import (
	"siafu/graph"
	"siafu/graph/shard"
	"siafu/kernels"
	"siafu/kernels/model"
)

// targets are the vertices whose logits the loss reads. All other rows of the gradient of
// a last layer are zeros, and nobody reads their logits in a pass that wants no others: the
// edges into them are left out, which changes no bit of what training reads.
type targets struct {
	vertexMask kernels.VertexMask // of own vertices; nil: all are
	apart      bool               // the edges of the backward pass are those into targets
}

// Edges are chosen where that leaves out an eighth or more, as choosing takes time too.
const keptOf, kept = 8, 7

// choose makes the training vertices the targets, if that leaves out enough edges.
func (t *targets) choose(s *shard.Shard) {
	if len(s.Split) > 0 && keptOf*s.EdgesInto(graph.SplitTrain) < kept*int64(len(s.In.Cols)) {
		t.vertexMask = kernels.NewVertexMask(s.NumOwn(), func(v int) bool { return s.Split[v] == graph.SplitTrain })
	}
}

// maskTargets is e, edges into an interval's vertices, for a pass.
func (t *targets) maskTargets(p model.Pass, e kernels.Edges) kernels.Edges {
	if p.Targets {
		e.RowMask = t.vertexMask
	}
	return e
}

// maskSources is e, edges by their source, for the backward pass.
func (t *targets) maskSources(e kernels.Edges) kernels.Edges {
	if !t.apart {
		e.ColumnMask = t.vertexMask
	}
	return e
}
