package graphwork

import (
	"siafu/kernels"
)

// publishedWeights are the attention weights of the interval that published its gradients last.
// They exist only with dynamic scores in asynchronous modes: the gradient of a source needs the
// weights of its targets, which change when the targets begin the next epoch.
//
// Design note: a copy per interval would give the edges of each target their own weights, and
// split a source's backward pass by interval. Intervals in the same epoch share one copy.
type publishedWeights struct{ vector, edge kernels.Mat }

// allocPublished allocates the published weights of a layer.
func (w *Work) allocPublished(l *Layer) {
	l.published.vector = w.newZeros(Scores, l.shape.Heads, l.shape.Width)
	if dim := w.store.Network.Spec.EdgeDim(); dim > 0 {
		l.published.edge = w.newZeros(Scores, dim, l.shape.Columns())
	}
}

// publish copies the weights of an interval's attention, if they are published.
func (s *publishedWeights) publish(i Interval, a kernels.Attention) {
	if s.vector.IsNil() {
		return
	}
	i.Ops.Copy(s.vector, a.Vector)
	if !s.edge.IsNil() {
		i.Ops.Copy(s.edge, a.Edge)
	}
}

// attach returns an attention with the published weights, if there are any.
func (s *publishedWeights) attach(a kernels.Attention) kernels.Attention {
	if !s.vector.IsNil() {
		a.Vector, a.Edge = s.vector, s.edge
	}
	return a
}
