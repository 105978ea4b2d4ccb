package model

import "siafu/kernels"

// Hidden is H, what a layer applies weights to: the rows of the layer before,
// or, in the first layer, the features, with dropout and however they are
// stored. Its methods read the value Input.
type Hidden struct {
	first, constant bool
	through         bool     // its gradient takes its place, beyond the activation that made it
	drop            *Dropout // of that
}

// Constant reports whether there is nothing after these rows to be trained.
func (h Hidden) Constant() bool { return h.constant }

// sparse reports whether H is multiplied as the sparse matrix that it is.
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
// grad [n x cols], w [in x cols]. It does nothing where H is constant. A layer whose H goes Through
// has dst in the place of H, and gets the gradient of what was activated there.
func (h Hidden) InputGrad(x *Step, dst, grad, w kernels.Mat, add bool) {
	switch {
	case h.through:
		h.InputGrads(x, dst, grad, w, kernels.Mat{}, kernels.Mat{})
	case !h.Constant():
		x.Ops.MatMulTransB(dst, grad, w, add)
	}
}

// InputGrads is dst = grad wᵀ + grad2 w2ᵀ, as InputGrad has it.
func (h Hidden) InputGrads(x *Step, dst, grad, w, grad2, w2 kernels.Mat) {
	if h.through {
		x.Ops.(kernels.FusedInputGrad).GradThrough(dst, grad, w, grad2, w2, x.Mask(h.drop))
		return
	}
	h.InputGrad(x, dst, grad, w, false)
	h.InputGrad(x, dst, grad2, w2, true)
}
