package graphwork

import (
	"sort"

	"siafu/graph"
	"siafu/graph/shard"
	"siafu/kernels"
	"siafu/kernels/model"
)

// targets are the vertices whose logits the loss reads. All other rows of the gradient of
// a last layer are zeros, and nobody reads their logits in a pass that wants no others: the
// edges into them are left out. That changes no bit of what training reads, but where the row of a
// hub is cut into other pieces, and attention takes edges several at a time.
type targets struct {
	chosen kernels.Chosen // of own vertices; nil: all are
	apart  bool           // the edges of the way back are those into targets
}

// Edges are chosen where that leaves out an eighth or more, as choosing takes time too.
const (
	keptOf, kept = 8, 7
	// targetEdges is how many edges there is room for while some of them are chosen.
	targetEdges = 1 << 17
)

// choose makes the training vertices the targets, if that leaves out enough edges.
func (t *targets) choose(s *shard.Shard) {
	if len(s.Split) > 0 && keptOf*s.EdgesInto(graph.SplitTrain) < kept*int64(len(s.In.Cols)) {
		t.chosen = kernels.NewChosen(s.NumOwn(), func(v int) bool { return s.Split[v] == graph.SplitTrain })
	}
}

// into is e, edges into an interval's vertices, for a pass.
func (t *targets) into(i Interval, p model.Pass, e kernels.Edges) kernels.Edges {
	ops, ok := i.Ops.(kernels.Choosing)
	if !ok || !p.Targets || t.chosen == nil {
		return e
	}
	return ops.Into(e, t.chosen, i.Lo)
}

// from calls f with parts [lo, hi) of edges by their source, those into targets, for the way back.
func (t *targets) from(o kernels.Ops, e kernels.Edges, f func(lo, hi int, e kernels.Edges)) {
	ops, ok := o.(kernels.Choosing)
	if !ok || t.apart || t.chosen == nil {
		f(0, e.Rows(), e)
		return
	}
	begin := e.Begin.Host()
	for lo := 0; lo < len(begin); {
		hi := lo + 1
		hi += sort.Search(len(begin)-hi, func(r int) bool { return begin[hi+r] > begin[lo]+targetEdges })
		part := kernels.Edges{Begin: e.Begin.Part(lo, hi), End: e.End.Part(lo, hi), Cols: e.Cols, Base: e.Base, First: e.First + uint32(lo)}
		f(lo, hi, ops.From(part, t.chosen))
		lo = hi
	}
}
