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
	LocalIDs kernels.Vector[uint32] // of all local vertices, ghosts included: the counters of attention dropout
}

// Features are graph.Features in the memory of an Ops.
type Features struct {
	Rows, Dim int
	Dense     kernels.Mat     // none if sparse; may be BF16 in this process's memory
	Sparse    *kernels.Sparse // nil if dense
}

// Place returns a partition's data in the memory of o. Copies are valid as long as a.
func Place(o kernels.Ops, a *mapped.Arena, f graph.Features, ids, localIDs []uint32) Vertices {
	in := Vertices{Features: Features{Rows: f.Rows, Dim: f.Dim}, IDs: kernels.Place(o, a, ids), LocalIDs: kernels.Place(o, a, localIDs)}
	switch {
	case f.Sparse != nil:
		s := kernels.PlaceSparse(o, a, *f.Sparse)
		in.Features.Sparse = &s
	case f.Half != nil:
		in.Features.Dense = kernels.PlaceHalf(o, a, f.Rows, f.Dim, f.Half)
	case f.Dense != nil:
		in.Features.Dense = kernels.PlaceMat(o, a, f.Rows, f.Dim, f.Dense)
	}
	return in
}

// WideFeatures is the purpose of the memory for a float32 copy of features in bfloat16.
const WideFeatures = "features as float32"

// accepted returns in with a float32 copy of features in bfloat16 if n does not take them.
func (in Vertices) accepted(n *Network, ops kernels.Ops, a *mapped.Arena) Vertices {
	if x := in.Features.Dense; x.Half() && !n.TakesHalves() {
		in.Features.Dense = kernels.Widened(ops, a.For(WideFeatures), x)
	}
	return in
}

// part returns the part of in for own vertices [lo, hi).
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

// input is the features X of an interval, dense or sparse, with dropout before the first
// layer. For sparse features the backward pass recomputes the mask from the same counters; it
// is not stored.
type input struct {
	Vertices
	drop       *Dropout
	transposed *kernels.Transposed // of sparse features, filled on first use; nil if no product needs it
}

// multiply computes dst = X w, dst [n x cols], w [dim x cols], of a sparse X.
func (in *input) multiply(x *Step, dst, w kernels.Mat) {
	x.Ops.SparseMatMul(dst, *in.Features.Sparse, w, x.Mask(in.drop))
}

// multiplyGrad computes gw = Xᵀ grad, gw [dim x cols], grad [n x cols], of a sparse X.
func (in *input) multiplyGrad(x *Step, gw, grad kernels.Mat) {
	in.transposed.Fill(x.Ops, *in.Features.Sparse)
	x.Ops.SparseMatMulTransA(gw, in.transposed, grad, x.Mask(in.drop))
}
