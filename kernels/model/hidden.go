package model

import "siafu/kernels"

// Weight is one weight matrix or bias with its gradient, views of the flat
// vectors.
type Weight struct{ W, Grad kernels.Mat }

// Hidden is H, what a layer applies weights to: the rows of the layer before,
// or, in the first layer, the features, with dropout and however they are
// stored. Emit takes the rows; all other methods may be called after that, and in
// a first layer, which Emit brings nothing, at any time.
type Hidden struct {
	ops      kernels.Ops
	input    *input       // of the first layer, else nil
	cached   *cachedInput // of the first layer where the gathered features are kept
	previous kernels.Mat
}

// Constant tells whether there is nothing behind these rows to be trained.
func (h *Hidden) Constant() bool { return h.input != nil }

// Take remembers the rows [n x in] that Emit was given, nil in the first layer.
func (h *Hidden) Take(rows kernels.Mat) { h.previous = rows }

// Rows is the matrix itself [n x in], for reading.
func (h *Hidden) Rows(p Pass) kernels.Mat {
	if h.input != nil {
		return h.input.rows(p)
	}
	return h.previous
}

// Multiply is dst = H w, dst [n x cols], w [in x cols].
func (h *Hidden) Multiply(dst, w kernels.Mat, p Pass) {
	if h.input != nil {
		h.input.multiply(dst, w, p)
		return
	}
	h.ops.MatMul(dst, h.previous, w, false)
}

// MultiplyGrad is gw = Hᵀ grad, gw [in x cols], grad [n x cols].
func (h *Hidden) MultiplyGrad(gw, grad kernels.Mat, p Pass) {
	if h.input != nil {
		h.input.multiplyGrad(gw, grad, p)
		return
	}
	h.ops.MatMulTransA(gw, h.previous, grad, false)
}

// InputGrad is dst = grad wᵀ, the gradient of H, or adds it to dst [n x in];
// grad [n x cols], w [in x cols]. It does nothing where H is constant.
func (h *Hidden) InputGrad(dst, grad, w kernels.Mat, add bool) {
	if !h.Constant() {
		h.ops.MatMulTransB(dst, grad, w, add)
	}
}

// MultiplyGathered is dst = (ÂH) w, or adds it to dst [n x cols]. ÂH is
// gathered [n x in], but for a first layer that keeps it.
func (h *Hidden) MultiplyGathered(dst, w, gathered kernels.Mat, add bool) {
	if h.cached != nil {
		gathered = h.cached.rows
	}
	h.ops.MatMul(dst, gathered, w, add)
}

// MultiplyGatheredGrad is gw = (ÂH)ᵀ grad, gw [in x cols], grad [n x cols].
func (h *Hidden) MultiplyGatheredGrad(gw, gathered, grad kernels.Mat) {
	if h.cached != nil {
		gathered = h.cached.rows
	}
	h.ops.MatMulTransA(gw, gathered, grad, false)
}
