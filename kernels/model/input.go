package model

import (
	"siafu/graph/mapped"
	"siafu/kernels"
)

// input is the features X of the own vertices, dense or sparse, with dropout
// on the way into the first layer. The same mask is drawn on the way back from
// the same counters; it is stored nowhere.
type input struct {
	Input
	team       *kernels.Team
	arena      *mapped.Arena
	drop       *kernels.Dropout
	transposed *kernels.SparseTransposed // of sparse features, built on first use
	scratch    []float32                 // dense rows, where X itself can't be handed out
}

// rows is X as a dense matrix [n x dim].
func (x *input) rows(p Pass) []float32 {
	f, drop := x.Features, p.Mask(x.drop)
	if f.Sparse == nil && drop == nil {
		return f.Dense
	}
	if x.scratch == nil {
		x.scratch = mapped.Make[float32](x.arena, f.Rows*f.Dim)
	}
	if f.Sparse != nil {
		kernels.SparseToDense(x.team, x.scratch, f.Dim, *f.Sparse, drop)
	} else {
		kernels.DropoutRows(x.team, x.scratch, f.Rows, f.Dim, f.Dense, drop)
	}
	return x.scratch
}

// multiply is dst = X w, dst [n x cols], w [dim x cols].
func (x *input) multiply(dst []float32, cols int, w []float32, p Pass) {
	f := x.Features
	if f.Sparse == nil {
		kernels.MatMul(x.team, dst, f.Rows, cols, f.Dim, x.rows(p), w, false)
		return
	}
	kernels.SparseMatMul(x.team, dst, cols, *f.Sparse, w, p.Mask(x.drop))
}

// multiplyGrad is gw = Xᵀ grad, gw [dim x cols], grad [n x cols].
func (x *input) multiplyGrad(gw []float32, cols int, grad []float32, p Pass) {
	f := x.Features
	if f.Sparse == nil {
		kernels.MatMulTransA(x.team, gw, f.Dim, cols, f.Rows, x.rows(p), grad, false)
		return
	}
	if x.transposed == nil {
		x.transposed = kernels.TransposeSparse(*f.Sparse, f.Dim, x.arena)
	}
	kernels.SparseMatMulTransA(x.team, gw, cols, x.transposed, grad, p.Mask(x.drop))
}
