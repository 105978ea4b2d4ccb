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
	ops        kernels.Ops
	arena      *mapped.Arena
	drop       *kernels.Dropout
	transposed *kernels.Transposed // of sparse features, filled on first use; nil: not asked for
	scratch    kernels.Mat         // dense rows, where X itself can't be handed out
	drawn      bool                // they are those of the pass
	pass       Pass
}

// rows is X as a dense matrix [n x dim]. In a pass that has asked for it before
// nothing is written: others may be gathering it.
func (x *input) rows(p Pass) kernels.Mat {
	f, drop := x.Features, p.Mask(x.drop)
	if f.Sparse == nil && drop == nil {
		return f.Dense
	}
	if x.drawn && x.pass == p {
		return x.scratch
	}
	if x.scratch.IsNil() {
		x.scratch = kernels.NewMat(x.ops, x.arena, f.Rows, f.Dim)
	}
	x.drawn, x.pass = true, p
	if f.Sparse != nil {
		x.ops.SparseToDense(x.scratch, *f.Sparse, drop)
	} else {
		x.ops.DropoutRows(x.scratch, f.Dense, drop)
	}
	return x.scratch
}

// multiplied makes room for what a product of X with weights needs on the way
// back, nothing for nil. A layer that multiplies says so when it is made: then
// the memory of a network is known before it runs.
func (x *input) multiplied() {
	if x != nil && x.Features.Sparse != nil && x.transposed == nil {
		x.transposed = kernels.NewTransposed(x.ops, x.arena, *x.Features.Sparse, x.Features.Dim)
	}
}

// multiply is dst = X w, dst [n x cols], w [dim x cols].
func (x *input) multiply(dst, w kernels.Mat, p Pass) {
	f := x.Features
	if f.Sparse == nil {
		x.ops.MatMul(dst, x.rows(p), w, false)
		return
	}
	x.ops.SparseMatMul(dst, *f.Sparse, w, p.Mask(x.drop))
}

// multiplyGrad is gw = Xᵀ grad, gw [dim x cols], grad [n x cols].
func (x *input) multiplyGrad(gw, grad kernels.Mat, p Pass) {
	f := x.Features
	if f.Sparse == nil {
		x.ops.MatMulTransA(gw, x.rows(p), grad, false)
		return
	}
	x.multiplied()
	x.transposed.Fill(x.ops, *f.Sparse)
	x.ops.SparseMatMulTransA(gw, x.transposed, grad, p.Mask(x.drop))
}
