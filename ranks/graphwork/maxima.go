package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// maxima gathers the maximum of each column. It stores the sources of a layer's maxima, as local ids
// [own x GradWidth], for the backward pass.
type maxima struct {
	l         *Layer
	store     *model.Store
	arg, back kernels.Mat // arg is written by gathers; back is published with the gradients
}

// newMaxima returns the maxima of a layer. Asynchronous intervals gather again before others have read
// their gradients, so that they need two arrays.
func (w *Work) newMaxima(l *Layer, o Options) *maxima {
	x := &maxima{l: l, store: w.store}
	if !l.shape.Backward || o.Forward {
		return x
	}
	x.arg = w.newZeros(Maxima, w.shard.NumOwn(), l.Width)
	if x.back = x.arg; o.Asynchronous {
		x.back = w.newZeros(Maxima, w.shard.NumOwn(), l.Width)
	}
	return x
}

func (x *maxima) Begin(model.Pass, kernels.Mat) {}

func (x *maxima) Publish(Interval, kernels.Mat) {}

func (x *maxima) PublishGhosts(kernels.Ops, int, int) {}

func (x *maxima) PublishGrads(i Interval, _ kernels.Mat) {
	if x.back != x.arg {
		i.Ops.Copy(i.rows(x.back), i.rows(x.arg))
	}
}

func (x *maxima) GatherOwn(i Interval, _ model.Pass) { x.gather(i, x.l.ownEdges(i), x.l.Rows, false) }

func (x *maxima) GatherGhosts(i Interval, _ model.Pass) {
	rows := x.l.Ghosts
	if x.l.mesh.Plan.Ghosts == 0 { // no edges either, but the kernel needs a matrix
		rows = x.l.Rows
	}
	x.gather(i, x.l.ghostEdges(i), rows, true)
}

// gather gathers maxima of rows along edges. With add, it continues an earlier gather.
func (x *maxima) gather(i Interval, edges kernels.Edges, rows kernels.Mat, add bool) {
	arg := x.arg
	if !arg.IsNil() {
		arg = i.rows(arg)
	}
	i.Ops.MaxGather(i.rows(x.l.gathered), arg, edges, rows, x.store.LocalIDs(), add)
}

func (x *maxima) GhostGrads(o kernels.Ops, first int, dst kernels.Mat) {
	edges := x.l.edges.ghost.edges(first, first+dst.Rows)
	o.MaxGatherGrad(dst, edges, x.back, x.l.Grads, x.l.mesh.shard.NumOwn()+first)
}

func (x *maxima) GatherBackward(i Interval, _ model.Pass) {
	i.Ops.MaxGatherGrad(x.l.backwardRows(i), i.edges(x.l.edges.own), x.back, x.l.Grads, i.Lo)
}
