package graphwork

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// mappedGhosts adds the sums of ghost rows that an affine map predicts. With the rows H̃ of ghosts, a
// matrix M and a row c,
//
//	Â (H̃ M + 1 c) = (Â H̃) M + (Â 1) c
//
// where Â are the edges from ghosts. A pass needs one product with a row for each own vertex, in place of
// one for each ghost. Â H̃ is stored as long as H̃ does not change, and then is not gathered again.
type mappedGhosts struct {
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

// AllowMaps allocates the sums of mapped ghost rows of layer l, so that MapGhosts may be called. lasting
// reports whether passes use the same rows several times; otherwise there must be more ghosts. It
// returns false if there are no ghosts, and if the layer needs their rows: for attention, maxima, lists
// or bfloat16.
func (w *Work) AllowMaps(l int, lasting bool) bool {
	at := w.layers[l]
	if at.heads > 0 || at.maxima.on || at.lists.on || w.half || w.Plan.Ghosts == 0 || w.ops.Remote() || at.Width != at.GradWidth || w.Plan.Sums > 0 {
		return false
	}
	m, own, ghosts := &at.mapped, w.shard.NumOwn(), w.Plan.Ghosts
	if m.lasting = lasting; !lasting && float64(own) > mostMapped*float64(ghosts) {
		return false
	}
	m.sums, m.degrees = w.newZeros(Mapped, own, at.Width), w.newZeros(Mapped, own, 1)
	w.arena.Fill(func() {
		m.versions = make([]int, own+1)
		ones := make([]float32, ghosts)
		for i := range ones {
			ones[i] = 1
		}
		edges := at.ghostEdges(Interval{Hi: own})
		edges.RowScale, edges.ColScale = at.mesh.row, at.mesh.col
		w.ops.SpMM(m.degrees, edges, kernels.HostMat(ghosts, 1, ones), false)
	})
	return true
}

// MapGhosts makes gathers of l until the next call read, in place of each ghost row x of TakeGhosts,
// the row x M + c; m is M with the row c below it [Width+1 x Width]. Rows with the same version, from
// 1, are equal. Without m, gathers read the rows themselves.
func (w *Work) MapGhosts(l *Layer, m kernels.Mat, version int) {
	l.mapped.matrix, l.mapped.shift, l.mapped.version = kernels.Mat{}, kernels.Mat{}, version
	if !m.IsNil() {
		l.mapped.matrix, l.mapped.shift = m.Part(0, l.Width), m.Part(l.Width, l.Width+1)
	}
}

// gather adds the sums of mapped rows to an interval's gathered rows. Lasting sums are those of all edges,
// because a later pass may need the logits of vertices that are no targets.
func (m *mappedGhosts) gather(l *Layer, i Interval, p model.Pass) {
	if i.Lo == i.Hi {
		return
	}
	sums, dst := i.rows(m.sums), l.gatheredRows(i)
	if !m.lasting || m.versions[i.Lo] != m.version {
		edges := l.ghostEdges(i)
		if !m.lasting {
			edges = l.maskTargets(p, edges)
		}
		edges.RowScale, edges.ColScale = i.scale(l.mesh.row), l.mesh.col
		i.Ops.SpMM(sums, edges, l.Ghosts, false)
		m.versions[i.Lo] = m.version
	}
	i.Ops.MatMul(dst, sums, m.matrix, true)
	i.Ops.MatMul(dst, i.rows(m.degrees), m.shift, true)
}
