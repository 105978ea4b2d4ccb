package model

import (
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Lists allocates the first layer's emitted rows if its features are gathered as lists
// (Network.Lists), else none.
func (s *Store) Lists(a *mapped.Arena) kernels.Lists {
	f := s.input.Features
	if !s.Network.Lists() || f.Rows == 0 {
		return kernels.Lists{}
	}
	words := kernels.ListWords(f.Rows, f.Sparse.Cols.Len())
	return kernels.NewLists(f.Rows, f.Dim, mapped.Make[uint64](a, words))
}

// List sets the frame's rows of the lists to its features, with the dropout of a pass.
func (f *Frame) List(l kernels.Lists, p Pass, ops kernels.Ops) {
	f.step.Pass = p
	ops.List(l, f.lo, *f.input.Features.Sparse, f.step.Mask(f.input.drop))
}
