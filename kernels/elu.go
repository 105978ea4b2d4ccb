package kernels

import (
	"math"

	"siafu/kernels/internal/avx"
)

// The epilogue of a layer with ELU (Clevert et al. 2016) and its gradient.
//
//	forward   h = dropout(elu(z + bias)),  elu(x) = x > 0 ? x : e^x - 1
//	backward  ∇z = dropout'(∇h) · (elu > 0 ? 1 : elu + 1)
//
// Variant: fused, one pass. The gradient reads elu from h. A retained element of h is elu times the
// dropout scale.
//
// Design note: an ELU may be 0 without having been dropped, so a zero in h is ambiguous. Zeros
// of ELU are therefore stored as -0 and dropped elements as +0. Computing the mask a second
// time would cost more than the rest of the gradient.

// BiasELUDropout implements Ops. The relative error of an ELU is 1e-7; its zeros are -0.
func (t *Team) BiasELUDropout(dst, z, bias Mat, drop *Dropout) {
	mustFit(isSameShape(dst, z) && bias.Cols >= dst.Cols)
	args := newEpilogue(t, dst, z, bias, false, drop)
	args.elu = true
	if dst.Rows > 0 && dst.Cols > 0 {
		do(t, args, dst.Rows, rowGrain(dst.Cols))
	}
}

// elu computes ELU in place, with zeros stored as -0.
func elu(dst []float32) {
	for j, x := range dst {
		if !(x > 0) {
			dst[j] = float32(math.Copysign(float64(expLess1(max(x, -30))), -1))
		}
	}
}

// BiasELUDropoutGrad implements Ops. h and drop must come from the forward pass.
func (t *Team) BiasELUDropoutGrad(dst, bias, g, h Mat, drop *Dropout) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, h) && bias.Cols >= dst.Cols)
	activationGrad(t, dst, bias, g, h, drop, true)
}

// eluGradient sets dst to the gradient of the input of an ELU with the result h.
func (k *epilogueGradTask) eluGradient(dst, g, h []float32) {
	if k.set != avx.None {
		k.set.ELUGradient(dst, g, h, k.scale, k.kept)
		return
	}
	for j, v := range h {
		slope := float32(min(v, 0)*k.kept) + 1
		dst[j] = keepOrZero(float32(g[j]*k.scale)*slope, math.Float32bits(v) != 0)
	}
}

// Heads of attention, concatenated in a row.
//
//	dst[r][c] = 1/heads · Σ_h x[r][h·width+c] + bias[c]

// MeanHeads implements Ops.
func (t *Team) MeanHeads(dst Mat, heads int, x, bias Mat) {
	mustFit(heads >= 1 && dst.Rows == x.Rows && x.Cols == heads*dst.Cols && bias.Cols >= dst.Cols)
	do(t, meanHeadsTask{dst.Host(), x.Host(), bias.Host()[:dst.Cols], heads, dst.Cols, t.set, false}, dst.Rows, rowGrain(x.Cols))
}

// meanHeadsTask computes the mean of concatenated heads or, with back, their gradient from the
// mean's gradient.
type meanHeadsTask struct {
	mean, concatenated, bias []float32
	heads, width             int
	set                      avx.Set
	back                     bool
}

func (k *meanHeadsTask) chunk(lo, hi int) {
	scale := 1 / float32(k.heads)
	for r := lo; r < hi; r++ {
		mean, x := rowOf(k.mean, r, k.width), rowOf(k.concatenated, r, k.heads*k.width)
		switch {
		case k.back && k.set != avx.None:
			k.set.Spread(x, mean, k.heads, scale)
		case k.back:
			for j := range x {
				x[j] = mean[j%k.width] * scale
			}
		case k.set != avx.None:
			k.set.MeanOf(mean, x, k.bias, k.heads, scale)
		default:
			copy(mean, k.bias)
			for h := range k.heads {
				avx.AddScaled(mean, rowOf(x, h, k.width), scale)
			}
		}
	}
}

// MeanHeadsGrad implements Ops.
func (t *Team) MeanHeadsGrad(dst Mat, heads int, g Mat) {
	mustFit(heads >= 1 && dst.Rows == g.Rows && dst.Cols == heads*g.Cols)
	do(t, meanHeadsTask{g.Host(), dst.Host(), nil, heads, g.Cols, t.set, true}, dst.Rows, rowGrain(dst.Cols))
}
