package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// lists is the form of features that a first layer gathers as lists of non-zeros, with the dropout of
// the current pass.
type lists struct {
	plain
	rows kernels.Lists
}

// publishedLists are the lists of own vertices.
type publishedLists struct {
	lists
	pass model.Pass // the current one
}

// Lists is the purpose of lists.
const Lists = "lists of features"

// UseGhostLists sets the lists of ghosts, for a layer that gathers lists. The caller fills them in each
// pass.
func (l *Layer) UseGhostLists(rows kernels.Lists) { l.Gather.(*sums).ghosts = lists{rows: rows} }

func (k *publishedLists) begin(p model.Pass) { k.pass = p }

func (k *publishedLists) publish(i Interval, _ kernels.Mat) { i.Frame.List(k.rows, k.pass, i.Ops) }

func (k lists) gatherOwn(i Interval, dst kernels.Mat, m kernels.Edges, x kernels.Mat) {
	k.gather(i, dst, m, x, false)
}

func (k lists) gather(i Interval, dst kernels.Mat, m kernels.Edges, _ kernels.Mat, add bool) {
	if !k.rows.IsNil() { // else there are no vertices
		i.Ops.SpMMLists(dst, m, k.rows, add)
	}
}
