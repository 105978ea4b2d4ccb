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
	transposed *kernels.SparseTransposed // of sparse features, filled on first use; nil: not asked for
	scratch    []float32                 // dense rows, where X itself can't be handed out
	drawn      bool                      // they are those of the pass
	pass       Pass
}

// rows is X as a dense matrix [n x dim]. In a pass that has asked for it before
// nothing is written: others may be gathering it.
func (x *input) rows(p Pass) []float32 {
	f, drop := x.Features, p.Mask(x.drop)
	if f.Sparse == nil && drop == nil {
		return f.Dense
	}
	if x.drawn && x.pass == p {
		return x.scratch
	}
	if x.scratch == nil {
		x.scratch = mapped.Make[float32](x.arena, f.Rows*f.Dim)
	}
	x.drawn, x.pass = true, p
	if f.Sparse != nil {
		kernels.SparseToDense(x.team, x.scratch, f.Dim, *f.Sparse, drop)
	} else {
		kernels.DropoutRows(x.team, x.scratch, f.Rows, f.Dim, f.Dense, drop)
	}
	return x.scratch
}

// multiplied makes room for what a product of X with weights needs on the way
// back, nothing for nil. A layer that multiplies says so when it is made: then
// the memory of a network is known before it runs.
func (x *input) multiplied() {
	if x != nil && x.Features.Sparse != nil && x.transposed == nil {
		x.transposed = kernels.NewSparseTransposed(*x.Features.Sparse, x.Features.Dim, x.arena)
	}
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
	x.multiplied()
	x.transposed.Fill(*f.Sparse)
	kernels.SparseMatMulTransA(x.team, gw, cols, x.transposed, grad, p.Mask(x.drop))
}
