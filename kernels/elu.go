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
// Variant: fused, one pass. The gradient finds elu in h, which holds it times
// the scale of dropout where it was kept.
//
// Design note: an ELU may be 0 without having been dropped, so a zero in h
// does not tell which of both it is. Zeros of ELU are therefore stored as -0
// and what is dropped as +0; drawing the mask a second time would cost more
// than the rest of the gradient.

// BiasELUDropout computes dst [rows x cols] from z (same shape; dst may be z)
// and bias [cols]. An ELU is right to 1e-7 of its size; its zeros are -0.
func BiasELUDropout(t *Team, dst []float32, rows, cols int, z, bias []float32, drop *Dropout) {
	checkMatrix(z, rows, cols, shortInput)
	if len(bias) < cols {
		panic(shortVector)
	}
	args := eluTask{newEpilogue(t, dst, rows, cols, z, bias, false, drop)}
	if rows > 0 && cols > 0 {
		do(t, &t.slots.elu, args, rows, rowGrain(cols))
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

// elu is ELU in place, with zeros that are -0.
func elu(dst []float32) {
	for j, x := range dst {
		if !(x > 0) {
			dst[j] = float32(math.Copysign(math.Expm1(float64(x)), -1))
		}
	}
}

// BiasELUDropoutGrad computes dst = ∇z from g = ∇h and the h of the forward
// pass, untouched, all [rows x cols]; dst may be g. drop must be that of the
// forward pass. It sets bias [cols] to the gradient of the bias, which is the
// column sums of dst.
func BiasELUDropoutGrad(t *Team, dst, bias []float32, rows, cols int, g, h []float32, drop *Dropout) {
	checkMatrix(dst, rows, cols, shortDst)
	checkMatrix(g, rows, cols, shortInput)
	checkMatrix(h, rows, cols, shortInput)
	if len(bias) < cols {
		panic(shortVector)
	}
	if cols == 0 {
		return
	}
	args := eluGradTask{epilogueGradTask{columnSumsTask: newColumnSums(t, rows, cols, dst), input: g, h: h, scale: 1}, 1}
	if drop.active() {
		args.scale, args.kept = drop.prepare(rows).scale, float32(1-drop.P)
	}
	do(t, &t.slots.eluGrad, args, args.blocks, 1)
	sumParts(t, bias[:cols], args.blocks, false)
}

type eluGradTask struct {
	epilogueGradTask
	kept float32 // what undoes the scale of dropout
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
		dst[j] = orZero(g[j]*k.scale*slope, math.Float32bits(v) != 0)
	}
}

// Heads of an attention, side by side in a row.
//
//	dst[r][c] = 1/heads · Σ_h x[r][h·width+c] + bias[c]

// MeanHeads computes dst [rows x width] from x [rows x heads·width].
func MeanHeads(t *Team, dst []float32, rows, heads, width int, x, bias []float32) {
	checkMatrix(dst, rows, width, shortDst)
	checkMatrix(x, rows, heads*width, shortInput)
	if len(bias) < width {
		panic(shortVector)
	}
	if heads < 1 {
		panic(noHeads)
	}
	do(t, &t.slots.mean, meanHeadsTask{dst, x, bias[:width], heads, width, t.set}, rows, rowGrain(heads*width))
}

const noHeads = "kernels: mean of no heads"

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

// MeanHeadsGrad computes dst [rows x heads·width] from g [rows x width].
func MeanHeadsGrad(t *Team, dst []float32, rows, heads, width int, g []float32) {
	checkMatrix(dst, rows, heads*width, shortDst)
	checkMatrix(g, rows, width, shortInput)
	if heads < 1 {
		panic(noHeads)
	}
	do(t, &t.slots.meanGrad, meanHeadsGradTask{dst, g, heads, width, t.set}, rows, rowGrain(heads*width))
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
