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
// Variant: fused, one pass. The gradient reads elu from h, which has it times the dropout
// scale where it was kept.
//
// Design note: an ELU may be 0 without having been dropped, so a zero in h is ambiguous. Zeros
// of ELU are therefore stored as -0 and dropped elements as +0. Computing the mask a second
// time would cost more than the rest of the gradient.

// BiasELUDropout implements Ops. The relative error of an ELU is 1e-7; its zeros are -0.
func (t *Team) BiasELUDropout(dst, z, bias Mat, drop *Dropout) {
	mustFit(isSameShape(dst, z) && bias.Cols >= dst.Cols)
	args := eluTask{newEpilogue(t, dst, z, bias, false, drop)}
	if dst.Rows > 0 && dst.Cols > 0 {
		do(t, &t.slots.elu, args, dst.Rows, rowGrain(dst.Cols))
	}
}

type eluTask struct{ epilogueTask }

func (k *eluTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		dst, z := rowOf(k.dst, r, k.cols), rowOf(k.z, r, k.cols)
		if k.set != avx.None {
			k.set.ELU(dst, z, k.bias)
			continue
		}
		addBias(dst, z, k.bias)
		elu(dst)
	}
	if k.drop {
		k.mask.applyRows(k.dst, k.dst, k.cols, lo, hi)
	}
}

// elu computes ELU in place, with zeros stored as -0.
func elu(dst []float32) {
	for j, x := range dst {
		if !(x > 0) {
			dst[j] = float32(math.Copysign(math.Expm1(float64(x)), -1))
		}
	}
}

// BiasELUDropoutGrad implements Ops. h and drop must come from the forward pass.
func (t *Team) BiasELUDropoutGrad(dst, bias, g, h Mat, drop *Dropout) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, h) && bias.Cols >= dst.Cols)
	if dst.Cols == 0 {
		return
	}
	args := eluGradTask{epilogueGradTask{columnSumsTask: newColumnSums(t, dst.Rows, dst.Cols, dst.Host()), input: g.Host(), h: h.Host(), scale: 1}, 1}
	if drop.active() {
		args.scale, args.kept = drop.prepare(dst.Rows).scale, float32(1-drop.P)
	}
	do(t, &t.slots.eluGrad, args, args.blocks, 1)
	sumParts(t, bias.Host()[:dst.Cols], args.blocks, false)
}

type eluGradTask struct {
	epilogueGradTask
	kept float32 // inverse of the dropout scale
}

func (k *eluGradTask) chunk(lo, hi int) { k.sumWritten(lo, hi, k.gradient) }

// gradient writes the elements [lo, hi).
func (k *eluGradTask) gradient(lo, hi int) {
	dst, g, h := k.g[lo:hi], k.input[lo:hi], k.h[lo:hi]
	if k.set != avx.None {
		k.set.ELUGradient(dst, g, h, k.scale, k.kept)
		return
	}
	for j, v := range h {
		slope := float32(min(v, 0)*k.kept) + 1
		dst[j] = keepOrZero(g[j]*k.scale*slope, math.Float32bits(v) != 0)
	}
}

// Heads of attention, concatenated in a row.
//
//	dst[r][c] = 1/heads · Σ_h x[r][h·width+c] + bias[c]

// MeanHeads implements Ops.
func (t *Team) MeanHeads(dst Mat, heads int, x, bias Mat) {
	mustFit(heads >= 1 && dst.Rows == x.Rows && x.Cols == heads*dst.Cols && bias.Cols >= dst.Cols)
	do(t, &t.slots.mean, meanHeadsTask{dst.Host(), x.Host(), bias.Host()[:dst.Cols], heads, dst.Cols, t.set}, dst.Rows, rowGrain(x.Cols))
}

type meanHeadsTask struct {
	dst, x, bias []float32
	heads, width int
	set          avx.Set
}

func (k *meanHeadsTask) chunk(lo, hi int) {
	scale := 1 / float32(k.heads)
	for r := lo; r < hi; r++ {
		dst, x := rowOf(k.dst, r, k.width), rowOf(k.x, r, k.heads*k.width)
		if k.set != avx.None {
			k.set.MeanOf(dst, x, k.bias, k.heads, scale)
			continue
		}
		copy(dst, k.bias)
		for h := range k.heads {
			axpy1(dst, rowOf(x, h, k.width), scale)
		}
	}
}

// MeanHeadsGrad implements Ops.
func (t *Team) MeanHeadsGrad(dst Mat, heads int, g Mat) {
	mustFit(heads >= 1 && dst.Rows == g.Rows && dst.Cols == heads*g.Cols)
	do(t, &t.slots.meanGrad, meanHeadsGradTask{dst.Host(), g.Host(), heads, g.Cols, t.set}, dst.Rows, rowGrain(dst.Cols))
}

type meanHeadsGradTask struct {
	dst, g       []float32
	heads, width int
	set          avx.Set
}

func (k *meanHeadsGradTask) chunk(lo, hi int) {
	scale := 1 / float32(k.heads)
	for r := lo; r < hi; r++ {
		dst, g := rowOf(k.dst, r, k.heads*k.width), rowOf(k.g, r, k.width)
		if k.set != avx.None {
			k.set.Spread(dst, g, k.heads, scale)
			continue
		}
		for j := range dst {
			dst[j] = g[j%k.width] * scale
		}
	}
}
