package engine

import (
	"siafu/internal/mapped"
	"siafu/kernels"
)

// ghostMask applies the dropout of a pass to ghost rows that were sent without it
// (model.Spec.Whole). It is empty if owners apply dropout.
type ghostMask struct {
	ids  kernels.Vector[uint32] // of ghosts
	mask kernels.Dropout
}

// prepareMask allocates the mask of ghosts, if ranks exchange rows without dropout.
func (s *lockstep) prepareMask(e *Engine, a *mapped.Arena) {
	net, whole := s.store.Network, false
	for l := range net.Layers {
		whole = whole || net.Spec.Whole(l)
	}
	if whole && s.routes.connected() {
		s.ghostMask.ids = kernels.Place(s.adder, a, e.Shard.Ghosts)
	}
}

// idleGhosts returns the ghost rows of the exact exchange [ghosts x cols]. Only exact passes receive
// rows there. Other passes may write the ghost rows of a layer there after Take, until the next layer's.
func (s *lockstep) idleGhosts(cols int) kernels.Mat { return s.routes.exact.exchange.Ghosts(cols) }

// masked returns received rows of a layer with the dropout of the pass. Predicted rows, and those of
// an exact pass, are overwritten: they are in the memory of idleGhosts.
func (s *lockstep) masked(o kernels.Ops, layer int, rows kernels.Mat) kernels.Mat {
	g := &s.ghostMask
	mask := s.store.Network.GhostMask(layer, s.pass.Pass, g.ids, &g.mask)
	if mask == nil {
		return rows
	}
	dst := s.idleGhosts(rows.Cols)
	o.DropoutRows(dst, rows, mask)
	return dst
}
