package model

import "siafu/kernels"

// kept is ÂX of the own vertices [rows x cols], in float32 or bfloat16.
type kept struct {
	team       *kernels.Team
	rows, cols int
	full       []float32
	half       []kernels.BF16 // in the place of full
}

func (k *kept) put(from, to int, x []float32) {
	if k.half != nil {
		kernels.NarrowRows(k.team, k.half[from:], k.cols, k.rows, to-from, x, nil)
		return
	}
	kernels.PutColumns(k.team, k.full, k.rows, from, to, k.cols, x)
}

// apply is dst = dropout(relu(ÂX w + b)), the first layer's whole apply.
func (k *kept) apply(dst []float32, d *dense, drop *kernels.Dropout) {
	if k.half != nil {
		kernels.MatMulBiasReLUDropoutHalf(k.team, dst, k.rows, d.out, k.cols, k.half, d.w, d.b, !d.last, drop)
		return
	}
	kernels.MatMulBiasReLUDropout(k.team, dst, k.rows, d.out, k.cols, k.full, d.w, d.b, !d.last, drop)
}

// applyGrad sets gw to (ÂX)ᵀ grad.
func (k *kept) applyGrad(gw, grad []float32, out int) {
	if k.half != nil {
		kernels.MatMulTransAHalf(k.team, gw, k.cols, out, k.rows, k.half, grad, false)
		return
	}
	kernels.MatMulTransA(k.team, gw, k.cols, out, k.rows, k.full, grad, false)
}
