package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// mappedGhosts is the form of ghost rows that an affine map predicts. With the rows H̃ of ghosts, a
// matrix M and a row c,
//
//	Â (H̃ M + 1 c) = (Â H̃) M + (Â 1) c
//
// where Â are the edges from ghosts. A pass needs one product with a row for each own vertex, in place of
// one for each ghost. Â H̃ is stored as long as H̃ does not change, and then is not gathered again.
type mappedGhosts struct {
	plain                // of passes without a map
	sums     kernels.Mat // Â H̃ [own x Width]
	degrees  kernels.Mat // Â 1 [own x 1]
	lasting  bool        // passes use the same rows several times
	versions []int       // of the rows in sums, by the first vertex of an interval; 0: none

	matrix, shift kernels.Mat // M [Width x Width] and c [1 x Width] of the current pass; none: rows are gathered
	version       int         // of the rows
}

// Mapped is the purpose of the memory for the sums of mapped ghost rows.
const Mapped = "sums of ghost rows"

// mostMapped is the largest number of own vertices for each ghost with which maps of rows that change in
// each epoch save time.
const mostMapped = 0.5

// MapGhosts makes the gathers of layer l accept maps of ghost rows, and returns the function that sets
// the map of the current pass. In place of each row x of TakeGhosts, gathers then read the row x M + c; m
// is M with the row c below it [Width+1 x Width], and must not change until the end of the gathers. Rows
// with the same version, from 1, are equal. A pass begins without a map.
//
// lasting reports whether passes use the same rows several times; otherwise there must be more ghosts.
// MapGhosts returns nil if there are no ghosts, and if the layer needs their rows: for attention, maxima,
// lists or bfloat16.
func (w *Work) MapGhosts(l int, lasting bool) (set func(m kernels.Mat, version int)) {
	at, own, ghosts := w.layers[l], w.shard.NumOwn(), w.Plan.Ghosts
	s, ok := at.Gather.(*sums)
	if ok {
		_, ok = s.ghosts.(plain)
	}
	if !ok || ghosts == 0 || w.ops.Remote() || at.Width != at.GradWidth || w.Plan.Sums > 0 {
		return nil
	}
	if !lasting && float64(own) > mostMapped*float64(ghosts) {
		return nil
	}
	m := &mappedGhosts{sums: w.newZeros(Mapped, own, at.Width), degrees: w.newZeros(Mapped, own, 1), lasting: lasting}
	w.arena.Fill(func() {
		m.versions = make([]int, own+1)
		ones := make([]float32, ghosts)
		for i := range ones {
			ones[i] = 1
		}
		w.ops.SpMM(m.degrees, s.ghostEdges(Interval{Hi: own}), kernels.HostMat(ghosts, 1, ones), false)
	})
	s.ghosts = m
	return m.set
}

func (m *mappedGhosts) set(x kernels.Mat, version int) {
	width := m.sums.Cols
	m.matrix, m.shift, m.version = x.Part(0, width), x.Part(width, width+1), version
}

func (m *mappedGhosts) begin(model.Pass) { m.matrix = kernels.Mat{} }

// gather adds the sums of mapped rows to an interval's gathered rows. Lasting sums are those of all edges,
// because a later pass may need the logits of vertices that are no targets.
func (m *mappedGhosts) gather(i Interval, dst kernels.Mat, e kernels.Edges, x kernels.Mat, add bool) {
	if m.matrix.IsNil() {
		m.plain.gather(i, dst, e, x, add)
		return
	}
	if i.Lo == i.Hi {
		return
	}
	sums := i.rows(m.sums)
	if !m.lasting || m.versions[i.Lo] != m.version {
		if m.lasting {
			e.RowMask = nil
		}
		i.Ops.SpMM(sums, e, x, false)
		m.versions[i.Lo] = m.version
	}
	i.Ops.MatMul(dst, sums, m.matrix, add)
	i.Ops.MatMul(dst, i.rows(m.degrees), m.shift, true)
}
