package model

import "siafu/kernels"

// cachedInput is ÂX of the own vertices [rows x cols], in float32 or bfloat16.
type cachedInput struct {
	team       *kernels.Team
	rows, cols int
	full       []float32
	half       []kernels.BF16 // in the place of full
}

func (k *cachedInput) put(from, to int, x []float32) {
	if k.half != nil {
		kernels.NarrowRows(k.team, k.half[from:], k.cols, k.rows, to-from, x, nil)
		return
	}
	kernels.PutColumns(k.team, k.full, k.rows, from, to, k.cols, x)
}

// apply is dst = dropout(relu(ÂX w + b)), dst [rows x out].
func (k *cachedInput) apply(dst []float32, out int, w, b []float32, relu bool, drop *kernels.Dropout) {
	if k.half != nil {
		kernels.MatMulBiasReLUDropoutHalf(k.team, dst, k.rows, out, k.cols, k.half, w, b, relu, drop)
		return
	}
	kernels.MatMulBiasReLUDropout(k.team, dst, k.rows, out, k.cols, k.full, w, b, relu, drop)
}

// multiply is dst = ÂX w, or adds it to dst.
func (k *cachedInput) multiply(dst []float32, out int, w []float32, add bool) {
	if k.half != nil {
		kernels.MatMulHalf(k.team, dst, k.rows, out, k.cols, k.half, w, add)
		return
	}
	kernels.MatMul(k.team, dst, k.rows, out, k.cols, k.full, w, add)
}

// multiplyGrad sets gw to (ÂX)ᵀ grad.
func (k *cachedInput) multiplyGrad(gw []float32, out int, grad []float32) {
	if k.half != nil {
		kernels.MatMulTransAHalf(k.team, gw, k.cols, out, k.rows, k.half, grad, false)
		return
	}
	kernels.MatMulTransA(k.team, gw, k.cols, out, k.rows, k.full, grad, false)
}
