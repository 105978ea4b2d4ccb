package kernels

import "siafu/kernels/internal/avx"

// The epilogue of a layer and its gradient.
//
//	forward   h = dropout(relu(z + bias))
//	backward  ∇z = ∇h · dropout'(…) · relu'(…)
//
// Variant: fused, one pass over the matrix; every part may be left out. The
// gradient reads h, which is positive exactly where ReLU let through and
// dropout kept, so the mask is drawn again only where there is no ReLU. A NaN
// in h passes forward and stops the gradient.

// BiasReLUDropout computes dst [rows x cols] from z (same shape; dst may be
// z). bias [cols] nil adds nothing.
func BiasReLUDropout(t *Team, dst []float32, rows, cols int, z, bias []float32, relu bool, drop *Dropout) {
	checkMatrix(dst, rows, cols, shortDst)
	checkMatrix(z, rows, cols, shortInput)
	if bias != nil && len(bias) < cols {
		panic(shortVector)
	}
	if rows == 0 || cols == 0 {
		return
	}
	args := epilogueTask{dst: dst, z: z, bias: bias, cols: cols, relu: relu, drop: drop.active(), set: t.set}
	if args.drop {
		args.mask = drop.prepare(rows)
	}
	do(t, &t.slots.epilogue, args, rows, rowGrain(cols))
}

type epilogueTask struct {
	dst, z, bias []float32
	cols         int
	relu, drop   bool
	mask         mask
	set          avx.Set
}

func (k *epilogueTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		dst, z := rowOf(k.dst, r, k.cols), rowOf(k.z, r, k.cols)
		k.activate(dst, z)
		if k.drop {
			k.mask.apply(dst, dst, r)
		}
	}
}

// activate is one row before dropout. Both ways do the same operations.
func (k *epilogueTask) activate(dst, z []float32) {
	if k.set != avx.None && k.bias != nil {
		k.set.Activate(dst, z, k.bias, k.relu)
		return
	}
	addBias(dst, z, k.bias)
	if k.relu {
		rectify(dst)
	}
}

func addBias(dst, z, bias []float32) {
	if bias == nil {
		copy(dst, z)
		return
	}
	z, bias = z[:len(dst)], bias[:len(dst)]
	for j := range dst {
		dst[j] = z[j] + bias[j]
	}
}

// rectify is ReLU in place. The maximum of a NaN and 0 is the NaN.
func rectify(dst []float32) {
	for j, v := range dst {
		dst[j] = max(v, 0)
	}
}

// BiasReLUDropoutGrad computes dst = ∇z from g = ∇h and the h of the forward
// pass, all [rows x cols]; dst may be g. relu and drop must be those of the
// forward pass; without relu, h is not read and may be nil. The gradient of
// the bias is ColumnSums of dst.
func BiasReLUDropoutGrad(t *Team, dst []float32, rows, cols int, g, h []float32, relu bool, drop *Dropout) {
	if !relu {
		DropoutRows(t, dst, rows, cols, g, drop)
		return
	}
	checkMatrix(dst, rows, cols, shortDst)
	checkMatrix(g, rows, cols, shortInput)
	checkMatrix(h, rows, cols, shortInput)
	scale := float32(1)
	if drop.active() {
		scale = drop.prepare(rows).scale
	}
	do(t, &t.slots.gradient, epilogueGradTask{dst, g, h, scale, t.set}, rows*cols, chunkElements)
}

type epilogueGradTask struct {
	dst, g, h []float32
	scale     float32
	set       avx.Set
}

func (k *epilogueGradTask) chunk(lo, hi int) {
	dst, g, h := k.dst[lo:hi], k.g[lo:hi], k.h[lo:hi]
	if k.set != avx.None {
		k.set.Gradient(dst, g, h, k.scale)
		return
	}
	g, h = g[:len(dst)], h[:len(dst)]
	for j := range dst {
		dst[j] = orZero(g[j]*k.scale, h[j] > 0)
	}
}
