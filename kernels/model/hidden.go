package model

import "siafu/kernels"

// linear is one weight matrix [in x out] with its gradient.
type linear struct{ w, gw []float32 }

// hidden is what a layer applies weights to: the rows of the layer before, or,
// in the first layer, the features, with dropout and however they are stored.
type hidden struct {
	team     *kernels.Team
	input    *input // of the first layer, else nil
	kept     *kept  // of the first layer where the gathered features are kept
	count    int    // rows
	in       int
	previous []float32
}

// features tells whether there is nothing behind these rows to be trained.
func (h *hidden) features() bool { return h.input != nil }

// take remembers the rows of the layer before.
func (h *hidden) take(rows []float32) { h.previous = rows }

// rows is the matrix itself [count x in].
func (h *hidden) rows(p Pass) []float32 {
	if h.input != nil {
		return h.input.rows(p)
	}
	return h.previous
}

// multiply is dst = H w, dst [count x cols].
func (h *hidden) multiply(dst []float32, cols int, w []float32, p Pass) {
	if h.input != nil {
		h.input.multiply(dst, cols, w, p)
		return
	}
	kernels.MatMul(h.team, dst, h.count, cols, h.in, h.previous, w, false)
}

// multiplyGrad is gw = Hᵀ grad.
func (h *hidden) multiplyGrad(gw []float32, cols int, grad []float32, p Pass) {
	if h.input != nil {
		h.input.multiplyGrad(gw, cols, grad, p)
		return
	}
	kernels.MatMulTransA(h.team, gw, h.in, cols, h.count, h.previous, grad, false)
}
