package kernels

import "siafu/kernels/internal/avx"

// The epilogue of a layer and its gradient.
//
//	forward   h = dropout(relu(z + bias))
//	backward  ∇z = ∇h · dropout'(…) · relu'(…)
//
// Variant: fused, one pass over the matrix, in MatMulBiasReLUDropout after each block of a
// product; every part is optional. The gradient reads h, which is positive exactly where ReLU
// and dropout pass an element, so the mask is recomputed only without ReLU. A NaN in h
// propagates forward and blocks the gradient.

// BiasReLUDropout implements Ops.
func (t *Team) BiasReLUDropout(dst, z, bias Mat, relu bool, drop *Dropout) {
	mustFit(isSameShape(dst, z))
	args := newEpilogue(t, dst, z, bias, relu, drop)
	if dst.Rows > 0 && dst.Cols > 0 {
		do(t, args, dst.Rows, rowGrain(dst.Cols))
	}
}

// MatMulBiasReLUDropout implements Ops. dst must not overlap a or b.
func (t *Team) MatMulBiasReLUDropout(dst, a, b, bias Mat, relu bool, drop *Dropout) {
	mustFit(dst.Rows == a.Rows && a.Cols == b.Rows && dst.Cols == b.Cols)
	args := gemmTask{dst: dst.Host(), b: b.Host(), n: dst.Cols, k: a.Cols}
	args.a, args.half = floatsOrHalves(a)
	runDense(t, denseTask{newEpilogue(t, dst, dst, bias, relu, drop), args}, dst.Rows)
}

func runDense(t *Team, args denseTask, rows int) {
	p := &args.product
	if rows == 0 || p.n == 0 {
		return
	}
	p.run(t, rows, 0)
	if p.k == 0 {
		clear(p.dst[:rows*p.n])
		do(t, args.epilogueTask, rows, rowGrain(p.n))
		return
	}
	do(t, args, rows, t.product.rows)
}

// denseTask applies the epilogue to a block of a product while the block is in the caches.
type denseTask struct {
	epilogueTask
	product gemmTask
}

func (d *denseTask) chunk(lo, hi int) {
	d.product.chunk(lo, hi)
	d.epilogueTask.chunk(lo, hi)
}

func newEpilogue(t *Team, dst, z, bias Mat, relu bool, drop *Dropout) epilogueTask {
	mustFit(bias.IsNil() || bias.Cols >= dst.Cols)
	k := epilogueTask{dst: dst.Host(), z: z.Host(), bias: bias.Host(), cols: dst.Cols, relu: relu, drop: drop.active(), set: t.set}
	if k.drop {
		k.mask = drop.prepare(dst.Rows).on(t.set)
	}
	return k
}

type epilogueTask struct {
	dst, z, bias []float32
	cols         int
	relu, drop   bool
	elu          bool // instead of relu
	mask         mask
	set          avx.Set
}

// biasElements is the size of a bias that is repeated, so that several rows of few columns are computed at a time.
const biasElements = 512

func (k *epilogueTask) chunk(lo, hi int) {
	var memory [biasElements]float32
	dst, z, bias := k.dst[lo*k.cols:hi*k.cols], k.z[lo*k.cols:hi*k.cols], k.repeatedBias(memory[:])
	for n := len(bias); n > 0 && len(dst) > n; dst, z = dst[n:], z[n:] {
		k.activate(dst[:n], z[:n], bias)
	}
	k.activate(dst, z, bias[:min(len(bias), len(dst))])
	if k.drop {
		k.mask.applyRows(k.dst, k.dst, k.cols, lo, hi)
	}
}

// repeatedBias returns the bias of one or several rows. memory has zeros, which are the bias of a ReLU in package avx
// without another bias.
func (k *epilogueTask) repeatedBias(memory []float32) []float32 {
	switch {
	case k.bias == nil && k.relu && k.set != avx.None:
		return memory
	case k.bias == nil:
		return nil
	case 2*k.cols > len(memory):
		return k.bias[:k.cols]
	}
	n := 0
	for n+k.cols <= len(memory) {
		n += copy(memory[n:], k.bias[:k.cols])
	}
	return memory[:n]
}

// activate computes elements before dropout.
func (k *epilogueTask) activate(dst, z, bias []float32) {
	switch {
	case k.elu && k.set != avx.None:
		k.set.ELU(dst, z, bias)
	case bias != nil && k.set != avx.None:
		k.set.Activate(dst, z, bias, k.relu)
	default:
		addBias(dst, z, bias)
		if k.elu {
			elu(dst)
		} else if k.relu {
			rectify(dst, bias != nil)
		}
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

// rectify computes ReLU in place. A NaN stays a NaN. With signed a -0 stays a -0, as in
// package avx.
func rectify(dst []float32, signed bool) {
	for j, v := range dst {
		if signed {
			dst[j] = keepOrZero(v, !(v < 0))
		} else {
			dst[j] = max(v, 0)
		}
	}
}

// BiasReLUDropoutGrad implements Ops. h, relu and drop must come from the forward pass; h may be
// absent without relu.
func (t *Team) BiasReLUDropoutGrad(dst, bias, g, h Mat, relu bool, drop *Dropout) {
	mustFit(isSameShape(dst, g) && (!relu || isSameShape(dst, h)) && (bias.IsNil() || bias.Cols >= dst.Cols))
	if !relu {
		t.DropoutRows(dst, g, drop)
		if !bias.IsNil() && dst.Cols > 0 {
			columnSums(t, bias.Host(), dst, false)
		}
		return
	}
	activationGrad(t, dst, bias, g, h, drop, false)
}

// activationGrad computes the gradient through dropout and a ReLU or ELU with the result h.
func activationGrad(t *Team, dst, bias, g, h Mat, drop *Dropout, elu bool) {
	if dst.Cols == 0 {
		return
	}
	args := epilogueGradTask{columnSumsTask: newColumnSums(t, dst.Rows, dst.Cols, dst.Host()), input: g.Host(),
		h: h.Host(), scale: 1, kept: 1, elu: elu}
	if drop.active() {
		args.scale, args.kept = drop.prepare(dst.Rows).scale, float32(1-drop.P)
	}
	do(t, args, args.blocks, 1)
	if !bias.IsNil() {
		sumParts(t, bias.Host()[:dst.Cols], args.blocks, false)
	}
}

// epilogueGradTask writes the elements that columnSumsTask sums, a few rows at a time, so that
// they are summed from the first-level cache.
type epilogueGradTask struct {
	columnSumsTask
	input, h []float32
	scale    float32
	elu      bool
	kept     float32 // of an ELU: inverse of the dropout scale
}

// gradientElements is the approximate number of elements written before they are summed.
const gradientElements = 1 << 11

func (k *epilogueGradTask) chunk(lo, hi int) {
	step := max(gradientElements/k.cols, 1)
	for b := lo; b < hi; b++ {
		clear(rowOf(k.parts, b, k.cols))
		first, last := k.rowsOf(b)
		for r := first; r < last; r += step {
			end := min(r+step, last)
			k.gradient(r*k.cols, end*k.cols)
			k.sum(b, r, end)
		}
	}
}

// gradient writes the elements [lo, hi).
func (k *epilogueGradTask) gradient(lo, hi int) {
	dst, g, h := k.g[lo:hi], k.input[lo:hi], k.h[lo:hi]
	if k.elu {
		k.eluGradient(dst, g, h)
		return
	}
	if k.set != avx.None {
		k.set.Gradient(dst, g, h, k.scale)
		return
	}
	for j := range dst {
		dst[j] = keepOrZero(g[j]*k.scale, h[j] > 0)
	}
}
