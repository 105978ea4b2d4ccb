package model

import "siafu/kernels"

// Hidden is H, what a layer applies weights to: the rows of the layer before,
// or, in the first layer, the features, with dropout and however they are
// stored. Its methods read the value Input.
type Hidden struct{ first, constant bool }

// Constant tells whether there is nothing behind these rows to be trained.
func (h Hidden) Constant() bool { return h.constant }

// sparse tells whether H is multiplied as the sparse matrix that it is.
func (h Hidden) sparse(x *Step) bool { return h.first && x.frame.input.Features.Sparse != nil }

// Multiply is dst = H w, dst [n x cols], w [in x cols].
func (h Hidden) Multiply(x *Step, dst, w kernels.Mat) {
	if h.sparse(x) {
		x.frame.input.multiply(x, dst, w)
		return
	}
	x.Ops.MatMul(dst, x.At(Input), w, false)
}

// MultiplyGrad is gw = Hᵀ grad, gw [in x cols], grad [n x cols].
func (h Hidden) MultiplyGrad(x *Step, gw, grad kernels.Mat) {
	if h.sparse(x) {
		x.frame.input.multiplyGrad(x, gw, grad)
		return
	}
	x.Ops.MatMulTransA(gw, x.At(Input), grad, false)
}

// InputGrad is dst = grad wᵀ, the gradient of H, or adds it to dst [n x in];
// grad [n x cols], w [in x cols]. It does nothing where H is constant.
func (h Hidden) InputGrad(x *Step, dst, grad, w kernels.Mat, add bool) {
	if !h.Constant() {
		x.Ops.MatMulTransB(dst, grad, w, add)
	}
}
