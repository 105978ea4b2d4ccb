package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// lists are the features of own vertices and of ghosts as lists of non-zeros, with the dropout of
// the current pass. A first layer can gather them instead of dense rows.
type lists struct {
	on          bool
	own, ghosts kernels.Lists
	pass        model.Pass // the current one
}

// Lists is the purpose of lists.
const Lists = "lists of features"

// SetGhostLists sets the memory of the lists of ghosts, which ListGhosts fills.
func (l *Layer) SetGhostLists(k kernels.Lists) { l.lists.ghosts = k }

// Listed reports whether the layer gathers lists instead of rows.
func (l *Layer) Listed() bool { return l.lists.on }

// ListGhosts makes the lists of the ghosts of a frame.
func (l *Layer) ListGhosts(o kernels.Ops, f *model.Frame, p model.Pass) { f.List(l.lists.ghosts, p, o) }

// publish makes the lists of an interval's vertices.
func (k *lists) publish(i Interval) { i.Frame.List(k.own, k.pass, i.Ops) }

func (k *lists) gather(o kernels.Ops, dst kernels.Mat, m kernels.Edges, rows kernels.Lists, add bool) {
	if rows.IsNil() { // there are no vertices
		return
	}
	o.SpMMLists(dst, m, rows, add)
}
