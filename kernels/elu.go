package kernels

import "math"

// The epilogue of a layer with ELU (Clevert et al. 2016) and its gradient.
//
//	forward   h = dropout(elu(z + bias)),  elu(x) = x > 0 ? x : e^x - 1
//	backward  ∇z = dropout'(∇h) · (elu > 0 ? 1 : elu + 1)
//
// Variant: fused, one pass. The way back draws the mask again and finds elu in
// h, which holds it times the scale of dropout where it was kept.

// BiasELUDropout computes dst [rows x cols] from z (same shape; dst may be z)
// and bias [cols].
func BiasELUDropout(t *Team, dst []float32, rows, cols int, z, bias []float32, drop *Dropout) {
	checkMatrix(z, rows, cols, shortInput)
	args := eluTask{newEpilogue(t, dst, rows, cols, z, bias, false, drop)}
	if rows > 0 && cols > 0 {
		do(t, &t.slots.elu, args, rows, rowGrain(cols))
	}
}

type eluTask struct{ epilogueTask }

func (k *eluTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		dst := rowOf(k.dst, r, k.cols)
		k.activate(dst, rowOf(k.z, r, k.cols))
		for j, x := range dst {
			if !(x > 0) {
				dst[j] = float32(math.Expm1(float64(x)))
			}
		}
	}
	if k.drop {
		k.mask.applyRows(k.dst, k.dst, k.cols, lo, hi)
	}
}

// BiasELUDropoutGrad computes dst = ∇z from g = ∇h and the h of the forward
// pass, all [rows x cols]; dst may be g. drop must be that of the forward pass.
func BiasELUDropoutGrad(t *Team, dst []float32, rows, cols int, g, h []float32, drop *Dropout) {
	checkMatrix(h, rows, cols, shortInput)
	DropoutRows(t, dst, rows, cols, g, drop)
	kept := float32(1)
	if drop.active() {
		kept = float32(1 - drop.P)
	}
	do(t, &t.slots.eluGrad, eluGradTask{dst, h, kept}, rows*cols, chunkElements)
}

type eluGradTask struct {
	dst, h []float32
	kept   float32 // what undoes the scale of dropout
}

func (k *eluGradTask) chunk(lo, hi int) {
	dst, h := k.dst[lo:hi], k.h[lo:hi]
	for j, v := range h {
		if !(v > 0) {
			dst[j] *= v*k.kept + 1
		}
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
	do(t, &t.slots.mean, meanHeadsTask{dst, x, bias, heads, width}, rows, rowGrain(heads*width))
}

type meanHeadsTask struct {
	dst, x, bias []float32
	heads, width int
}

func (k *meanHeadsTask) chunk(lo, hi int) {
	scale := 1 / float32(k.heads)
	for r := lo; r < hi; r++ {
		dst := rowOf(k.dst, r, k.width)
		copy(dst, k.bias)
		for h := range k.heads {
			axpy1(dst, rowOf(k.x, r*k.heads+h, k.width), scale)
		}
	}
}

// MeanHeadsGrad computes dst [rows x heads·width] from g [rows x width].
func MeanHeadsGrad(t *Team, dst []float32, rows, heads, width int, g []float32) {
	checkMatrix(dst, rows, heads*width, shortDst)
	checkMatrix(g, rows, width, shortInput)
	do(t, &t.slots.meanGrad, meanHeadsGradTask{dst, g, heads, width}, rows, rowGrain(heads*width))
}

type meanHeadsGradTask struct {
	dst, g       []float32
	heads, width int
}

func (k *meanHeadsGradTask) chunk(lo, hi int) {
	scale := 1 / float32(k.heads)
	for r := lo; r < hi; r++ {
		g := rowOf(k.g, r, k.width)
		for h := range k.heads {
			dst := rowOf(k.dst, r*k.heads+h, k.width)
			for j, v := range g {
				dst[j] = v * scale
			}
		}
	}
}
