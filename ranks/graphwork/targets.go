package graphwork

import (
	"sort"

	"siafu/graph"
	"siafu/kernels"
	"siafu/kernels/model"
)

// targets are the vertices whose logits the loss reads. All other rows of the gradient of
// a last layer are zeros, and nobody reads their logits in a pass that wants no others: the
// edges into them are left out, which changes no bit of what training reads.
type targets struct {
	splits kernels.Vector[uint8] // [own]; none: all are targets
	apart  bool                  // the edges of the way back are those of targets
}

// into is e, edges into an interval's vertices, for a pass.
func (t *targets) into(i Interval, p model.Pass, e kernels.Edges) kernels.Edges {
	ops, ok := i.Ops.(kernels.Choosing)
	if !ok || !p.Targets || t.splits.Len() == 0 {
		return e
	}
	return ops.Into(e, t.splits.Part(i.Lo, i.Hi), graph.SplitTrain)
}

// From room for so many edges at a time those into targets are taken.
const targetEdges = 1 << 17

// from calls f with parts [lo, hi) of edges by their source, those into targets, for the way back.
func (t *targets) from(o kernels.Ops, e kernels.Edges, f func(lo, hi int, e kernels.Edges)) {
	ops, ok := o.(kernels.Choosing)
	if !ok || t.apart || t.splits.Len() == 0 {
		f(0, e.Rows(), e)
		return
	}
	begin := e.Begin.Host()
	for lo := 0; lo < len(begin); {
		hi := lo + 1
		hi += sort.Search(len(begin)-hi, func(r int) bool { return begin[hi+r] > begin[lo]+targetEdges })
		part := kernels.Edges{Begin: e.Begin.Part(lo, hi), End: e.End.Part(lo, hi), Cols: e.Cols, Base: e.Base, First: e.First + uint32(lo)}
		f(lo, hi, ops.From(part, t.splits, graph.SplitTrain))
		lo = hi
	}
}
