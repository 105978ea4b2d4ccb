package model

import "siafu/kernels"

// Hidden is H, the matrix that a layer multiplies by its weights: the rows of the preceding
// layer or, in the first layer, the features with dropout, dense or sparse. Its methods read
// the value from.
type Hidden struct {
	from            Value // Input, or Emitted if the layer applies the dropout (Spec.Whole)
	first, constant bool
	gradInPlace     bool     // the gradient of its activation's input overwrites it
	drop            *Dropout // of that activation
}

// Constant reports whether no trained weight precedes these rows.
func (h Hidden) Constant() bool { return h.constant }

// sparse reports whether H is multiplied as a sparse matrix.
func (h Hidden) sparse(x *Step) bool { return h.first && x.frame.input.Features.Sparse != nil }

// Multiply computes dst = H w, dst [n x cols], w [in x cols].
func (h Hidden) Multiply(x *Step, dst, w kernels.Mat) {
	if h.sparse(x) {
		x.frame.input.multiply(x, dst, w)
		return
	}
	x.Ops.MatMul(dst, x.At(h.from), w, false)
}

// MultiplyGrad computes gw = Hᵀ grad, gw [in x cols], grad [n x cols].
func (h Hidden) MultiplyGrad(x *Step, gw, grad kernels.Mat) {
	if h.sparse(x) {
		x.frame.input.multiplyGrad(x, gw, grad)
		return
	}
	x.Ops.MatMulTransA(gw, x.At(h.from), grad, false)
}

// InputGrad sets dst [n x in] to grad wᵀ, the gradient of H, or adds it; grad [n x cols], w
// [in x cols]. It does nothing if H is constant, or without grad. If gradInPlace is set, dst
// replaces H, and gets the gradient of the activation's input.
func (h Hidden) InputGrad(x *Step, dst, grad, w kernels.Mat, add bool) {
	switch {
	case grad.IsNil():
	case h.gradInPlace:
		h.InputGrads(x, dst, grad, w, kernels.Mat{}, kernels.Mat{})
	case !h.Constant():
		x.Ops.MatMulTransB(dst, grad, w, add)
	}
}

// InputGrads computes dst = grad wᵀ + grad2 w2ᵀ, otherwise like InputGrad. Ghosts have no grad,
// the gradient of a row that their owner computes.
func (h Hidden) InputGrads(x *Step, dst, grad, w, grad2, w2 kernels.Mat) {
	if grad.IsNil() {
		grad, w, grad2, w2 = grad2, w2, kernels.Mat{}, kernels.Mat{}
	}
	if h.gradInPlace {
		x.Ops.GradThrough(dst, grad, w, grad2, w2, x.Mask(h.drop))
		return
	}
	h.InputGrad(x, dst, grad, w, false)
	h.InputGrad(x, dst, grad2, w2, true)
}
