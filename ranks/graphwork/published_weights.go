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

func (w *Work) newPublishedWeights(shape kernels.Attention) publishedWeights {
	s := publishedWeights{vector: w.newZeros(Scores, shape.Heads, shape.Width)}
	if dim := w.store.Network.Spec.EdgeDim(); dim > 0 {
		s.edge = w.newZeros(Scores, dim, shape.Columns())
	}
	return s
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
