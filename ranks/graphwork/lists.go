package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// lists are what a first layer gathers in the place of dense rows: the features of own vertices
// and of ghosts, with the dropout of a pass, as lists of their non-zeros.
type lists struct {
	on          bool
	own, ghosts kernels.Lists
	pass        model.Pass // under way
}

// Lists is the purpose of lists.
const Lists = "lists of features"

// allocLists gives layer l room for lists, where it gathers them.
func (w *Work) allocLists(l *Layer) {
	l.lists = lists{on: true, own: w.store.Lists(w.arena.For(Lists))}
}

// SetGhostLists has the layer gather from ghosts the lists that ListGhosts makes.
func (l *Layer) SetGhostLists(room kernels.Lists) { l.lists.ghosts = room }

// Listed reports whether the layer gathers lists, and no matrix of rows.
func (l *Layer) Listed() bool { return l.lists.on }

// ListGhosts makes the lists of the ghosts of a frame.
func (l *Layer) ListGhosts(o kernels.Ops, f *model.Frame, p model.Pass) { f.List(l.lists.ghosts, p, o) }

// publish makes the lists of an interval's vertices.
func (k *lists) publish(i Interval) { i.Frame.List(k.own, k.pass, i.Ops) }

// gather gathers lists along edges.
func (k *lists) gather(o kernels.Ops, dst kernels.Mat, m kernels.Edges, rows kernels.Lists, add bool) {
	if rows.IsNil() { // of no vertices
		return
	}
	o.SpMMLists(dst, m, rows, add)
}
