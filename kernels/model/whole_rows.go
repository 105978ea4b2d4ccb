package model

import "siafu/kernels"

// Whole reports whether ranks exchange the input of layer l before its dropout. The layer emits its
// input with the dropout, and readers of a vertex's row draw the same mask from the vertex's id. A
// row of an earlier epoch then gets the mask of the current one.
func (s Spec) Whole(l int) bool {
	return s.WholeRows && l > 0 && l < s.Layers()
}

// TakesWholeRows reports whether WholeRows may be set.
func (s Spec) TakesWholeRows() bool {
	return s.kind().Whole && !s.Composed() && s.Dropout > 0 && s.Layers() > 1
}

// GhostMask returns the dropout of the ghosts of layer l with the given ids in a pass, stored in mask:
// nil if their owners have applied it, or if there is none.
func (n *Network) GhostMask(l int, p Pass, ids kernels.Vector[uint32], mask *kernels.Dropout) *kernels.Dropout {
	if !n.Spec.Whole(l) {
		return nil
	}
	return n.Spec.dropout(l, n.Spec.Dropout).Mask(p, ids, mask)
}

// Sent returns the rows of layer l that ranks exchange in a forward pass [own x GatherWidth].
func (s *Store) Sent(l int, p Pass) kernels.Mat {
	if s.Network.Spec.Whole(l) {
		return s.Forward(l, Input)
	}
	return s.Emitted(l, p)
}
