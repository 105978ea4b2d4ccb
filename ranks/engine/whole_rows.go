package engine

import (
	"siafu/halo"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// ghostMask applies the dropout of a pass to ghost rows that were sent without it
// (model.Spec.Whole). It is empty if owners apply dropout.
type ghostMask struct {
	ids  kernels.Vector[uint32] // of ghosts
	rows kernels.Mat            // with dropout [ghosts x widest], until the next layer receives
	mask kernels.Dropout
}

// prepareMask allocates the mask of ghosts, if ranks exchange rows without dropout.
func (s *lockstep) prepareMask(e *Engine, a *mapped.Arena) {
	net, widest := s.store.Network, 0
	for l := range net.Layers {
		if net.Spec.Whole(l) {
			widest = max(widest, net.Layers[l].GatherWidth())
		}
	}
	if widest == 0 || s.exchange == nil {
		return
	}
	s.ghostMask.ids = kernels.Place(s.adder, a, e.Shard.Ghosts)
	s.ghostMask.rows = kernels.NewMat(s.adder, a.For(halo.Ghosts), e.Shard.NumGhosts(), widest)
}

// masked returns received rows of a layer with the dropout of the pass.
func (s *lockstep) masked(o kernels.Ops, layer int, rows kernels.Mat) kernels.Mat {
	g := &s.ghostMask
	mask := s.store.Network.GhostMask(layer, s.pass, g.ids, &g.mask)
	if mask == nil {
		return rows
	}
	dst := g.rows.Reshape(rows.Rows, rows.Cols)
	o.DropoutRows(dst, rows, mask)
	return dst
}
