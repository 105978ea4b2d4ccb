package graphwork

import (
	"siafu/kernels"
)

// maxima is what a layer that gathers maxima knows beside its rows: where they come from,
// as local ids [own x GradWidth], where gradients go back.
type maxima struct {
	on        bool
	arg, back kernels.Mat // of each interval's own gather, and published with the gradients
}

// allocMaxima gives room for the maxima of a layer. Intervals that go their own ways gather
// again before others have taken their gradients.
func (w *Work) allocMaxima(l *Layer, o Options) {
	l.maxima.on = true
	if !l.needed || o.Forward {
		return
	}
	l.maxima.arg = w.newZeros(Maxima, w.shard.NumOwn(), l.Width)
	if l.maxima.back = l.maxima.arg; o.Apart {
		l.maxima.back = w.newZeros(Maxima, w.shard.NumOwn(), l.Width)
	}
}

// argRows returns the interval's part of arg, none where there is none.
func (i Interval) argRows(arg kernels.Mat) kernels.Mat {
	if arg.IsNil() {
		return arg
	}
	return i.rows(arg)
}

// maxOwn and maxGhosts are GatherOwn and GatherGhosts of maxima.
func (w *Work) maxOwn(l *Layer, i Interval) {
	i.Ops.MaxGather(i.rows(l.gathered), i.argRows(l.maxima.arg), l.ownEdges(i), l.Rows, w.store.LocalIDs(), false)
}
func (w *Work) maxGhosts(l *Layer, i Interval) {
	rows := l.Ghosts
	if l.mesh.Plan.Ghosts == 0 { // there are no edges either
		rows = l.Rows
	}
	i.Ops.MaxGather(i.rows(l.gathered), i.argRows(l.maxima.arg), l.ghostEdges(i), rows, w.store.LocalIDs(), true)
}

// publishMaxima is PublishGrads of maxima.
func (w *Work) publishMaxima(l *Layer, i Interval) {
	if l.maxima.back != l.maxima.arg {
		i.Ops.Copy(i.rows(l.maxima.back), i.rows(l.maxima.arg))
	}
}
