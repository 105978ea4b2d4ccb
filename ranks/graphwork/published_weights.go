package graphwork

import (
	"siafu/kernels"
)

// publishedWeights are the weights along the edges of a layer, with which the interval attended that has
// published its gradients last. There are none but where scores are dynamic and intervals go
// their own ways: what goes back to a source then needs the weights of those who attended to
// it, and theirs change as soon as they begin another epoch.
//
// Design note: a copy for each interval would give each target's edges its own, and cut the way
// back to a source into as many parts. Intervals that are in the same epoch have the same.
type publishedWeights struct{ vector, edge kernels.Mat }

// allocPublished gives room for them.
func (w *Work) allocPublished(l *Layer) {
	l.published.vector = w.newZeros(Scores, l.shape.Heads, l.shape.Width)
	if dim := w.store.Network.Spec.EdgeDim(); dim > 0 {
		l.published.edge = w.newZeros(Scores, dim, l.shape.Columns())
	}
}

// publish takes those of an interval's attention.
func (s *publishedWeights) publish(i Interval, a kernels.Attention) {
	if s.vector.IsNil() {
		return
	}
	i.Ops.Copy(s.vector, a.Vector)
	if !s.edge.IsNil() {
		i.Ops.Copy(s.edge, a.Edge)
	}
}

// attach is an attention with them, if there are any.
func (s *publishedWeights) attach(a kernels.Attention) kernels.Attention {
	if !s.vector.IsNil() {
		a.Vector, a.Edge = s.vector, s.edge
	}
	return a
}
