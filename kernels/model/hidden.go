package model

import "siafu/kernels"

// Weight is one weight matrix or bias with its gradient, views of the flat
// vectors.
type Weight struct{ W, Grad []float32 }

// Hidden is H, what a layer applies weights to: the rows of the layer before,
// or, in the first layer, the features, with dropout and however they are
// stored. Emit takes the rows; all other methods may be called after that, and in
// a first layer, which Emit brings nothing, at any time.
type Hidden struct {
	team     *kernels.Team
	input    *input       // of the first layer, else nil
	cached   *cachedInput // of the first layer where the gathered features are kept
	count    int          // rows
	in       int
	previous []float32
}

// Constant tells whether there is nothing behind these rows to be trained.
func (h *Hidden) Constant() bool { return h.input != nil }

// Take remembers the rows [n x in] that Emit was given, nil in the first layer.
func (h *Hidden) Take(rows []float32) { h.previous = rows }

// Rows is the matrix itself [n x in], for reading.
func (h *Hidden) Rows(p Pass) []float32 {
	if h.input != nil {
		return h.input.rows(p)
	}
	return h.previous
}

// Multiply is dst = H w, dst [n x cols], w [in x cols].
func (h *Hidden) Multiply(dst []float32, cols int, w []float32, p Pass) {
	if h.input != nil {
		h.input.multiply(dst, cols, w, p)
		return
	}
	kernels.MatMul(h.team, dst, h.count, cols, h.in, h.previous, w, false)
}

// MultiplyGrad is gw = Hᵀ grad, gw [in x cols], grad [n x cols].
func (h *Hidden) MultiplyGrad(gw []float32, cols int, grad []float32, p Pass) {
	if h.input != nil {
		h.input.multiplyGrad(gw, cols, grad, p)
		return
	}
	kernels.MatMulTransA(h.team, gw, h.in, cols, h.count, h.previous, grad, false)
}

// InputGrad is dst = grad wᵀ, the gradient of H, or adds it to dst [n x in];
// grad [n x cols], w [in x cols]. It does nothing where H is constant.
func (h *Hidden) InputGrad(dst []float32, cols int, grad, w []float32, add bool) {
	if !h.Constant() {
		kernels.MatMulTransB(h.team, dst, h.count, h.in, cols, grad, w, add)
	}
}

// MultiplyGathered is dst = (ÂH) w, or adds it to dst [n x cols]. ÂH is
// gathered [n x in], but for a first layer that keeps it.
func (h *Hidden) MultiplyGathered(dst []float32, cols int, w, gathered []float32, add bool) {
	if h.cached != nil {
		h.cached.multiply(dst, cols, w, add)
		return
	}
	kernels.MatMul(h.team, dst, h.count, cols, h.in, gathered, w, add)
}

// MultiplyGatheredGrad is gw = (ÂH)ᵀ grad, gw [in x cols], grad [n x cols].
func (h *Hidden) MultiplyGatheredGrad(gw []float32, cols int, gathered, grad []float32) {
	if h.cached != nil {
		h.cached.multiplyGrad(gw, cols, grad)
		return
	}
	kernels.MatMulTransA(h.team, gw, h.in, cols, h.count, gathered, grad, false)
}
