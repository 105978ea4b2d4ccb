package model

import (
	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Vertices are the data of a rank's own vertices that a network needs.
type Vertices struct {
	Features Features               // of the own vertices
	IDs      kernels.Vector[uint32] // dataset ids of the own vertices: the counters of dropout
	LocalIDs kernels.Vector[uint32] // and of all local vertices, ghosts too: those of attention
}

// Features are graph.Features where an Ops computes.
type Features struct {
	Rows, Dim int
	Dense     kernels.Mat     // none where they are sparse
	Sparse    *kernels.Sparse // nil where they are dense
}

// Place puts what a network needs of a partition where o computes. What it has to
// copy for that lives as long as a.
func Place(o kernels.Ops, a *mapped.Arena, f graph.Features, ids, localIDs []uint32) Vertices {
	in := Vertices{Features: Features{Rows: f.Rows, Dim: f.Dim}, IDs: kernels.Place(o, a, ids), LocalIDs: kernels.Place(o, a, localIDs)}
	switch {
	case f.Sparse != nil:
		s := kernels.PlaceSparse(o, a, *f.Sparse)
		in.Features.Sparse = &s
	case f.Dense != nil:
		in.Features.Dense = kernels.PlaceMat(o, a, f.Rows, f.Dim, f.Dense)
	}
	return in
}

// part is the part of in that belongs to the own vertices [lo, hi).
func (in Vertices) part(lo, hi int) Vertices {
	f := in.Features
	cut := Features{Rows: hi - lo, Dim: f.Dim}
	switch {
	case f.Sparse != nil:
		part := f.Sparse.Part(lo, hi)
		cut.Sparse = &part
	case !f.Dense.IsNil():
		cut.Dense = f.Dense.Part(lo, hi)
	}
	return Vertices{Features: cut, IDs: in.IDs.Part(lo, hi), LocalIDs: in.LocalIDs}
}

// input is the features X of an interval, dense or sparse, with dropout on the way
// into the first layer. Of sparse ones the same mask is drawn in the backward pass from
// the same counters; it is stored nowhere.
type input struct {
	Vertices
	drop       *Dropout
	transposed *kernels.Transposed // of sparse features, filled on first use; nil where no product needs it
}

// multiply is dst = X w, dst [n x cols], w [dim x cols], of a sparse X.
func (in *input) multiply(x *Step, dst, w kernels.Mat) {
	x.Ops.SparseMatMul(dst, *in.Features.Sparse, w, x.Mask(in.drop))
}

// multiplyGrad is gw = Xᵀ grad, gw [dim x cols], grad [n x cols], of a sparse X.
func (in *input) multiplyGrad(x *Step, gw, grad kernels.Mat) {
	in.transposed.Fill(x.Ops, *in.Features.Sparse)
	x.Ops.SparseMatMulTransA(gw, in.transposed, grad, x.Mask(in.drop))
}
