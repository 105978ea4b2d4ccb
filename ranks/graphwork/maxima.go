package graphwork

import (
	"siafu/kernels"
)

// maxima has the sources of a layer's maxima, as local ids [own x GradWidth], for the backward
// pass. gather writes arg; back is published with the gradients.
type maxima struct {
	on        bool
	arg, back kernels.Mat
}

// allocMaxima allocates the maxima of a layer. Asynchronous intervals gather again before others
// have read their gradients, so that they need two arrays.
func (w *Work) allocMaxima(l *Layer, o Options) {
	l.maxima.on = true
	if !l.needed || o.Forward {
		return
	}
	l.maxima.arg = w.newZeros(Maxima, w.shard.NumOwn(), l.Width)
	if l.maxima.back = l.maxima.arg; o.Asynchronous {
		l.maxima.back = w.newZeros(Maxima, w.shard.NumOwn(), l.Width)
	}
}

// gatherMaxima gathers maxima of rows along edges. With add, it continues an earlier gather.
func (w *Work) gatherMaxima(l *Layer, i Interval, edges kernels.Edges, rows kernels.Mat, add bool) {
	arg := l.maxima.arg
	if !arg.IsNil() {
		arg = i.rows(arg)
	}
	i.Ops.MaxGather(i.rows(l.gathered), arg, edges, rows, w.store.LocalIDs(), add)
}
