package kernels

import "siafu/kernels/internal/avx"

// The epilogue of a layer and its gradient.
//
//	forward   h = dropout(relu(z + bias))
//	backward  ∇z = ∇h · dropout'(…) · relu'(…)
//
// Variant: fused, one pass over the matrix, in MatMulBiasReLUDropout behind
// each block of a product; every part may be left out. The gradient reads h, which is positive exactly where ReLU let through and
// dropout kept, so the mask is drawn again only where there is no ReLU. A NaN
// in h passes forward and stops the gradient.

// BiasReLUDropout computes dst [rows x cols] from z (same shape; dst may be
// z). bias [cols] nil adds nothing.
func BiasReLUDropout(t *Team, dst []float32, rows, cols int, z, bias []float32, relu bool, drop *Dropout) {
	checkMatrix(z, rows, cols, shortInput)
	args := newEpilogue(t, dst, rows, cols, z, bias, relu, drop)
	if rows == 0 || cols == 0 {
		return
	}
	do(t, &t.slots.epilogue, args, rows, rowGrain(cols))
}

// MatMulBiasReLUDropout computes dst [m x n] = dropout(relu(a[m x k] b[k x n] +
// bias)). dst must not overlap a or b.
func MatMulBiasReLUDropout(t *Team, dst []float32, m, n, k int, a, b, bias []float32, relu bool, drop *Dropout) {
	checkMatrix(a, m, k, shortInput)
	args := gemmTask{dst: dst, a: a, b: b, n: n, k: k}
	runDense(t, denseTask{newEpilogue(t, dst, m, n, dst, bias, relu, drop), args}, m)
}

// MatMulBiasReLUDropoutHalf is MatMulBiasReLUDropout of an a in bfloat16.
func MatMulBiasReLUDropoutHalf(t *Team, dst []float32, m, n, k int, a []BF16, b, bias []float32, relu bool, drop *Dropout) {
	if len(a) < m*k {
		panic(shortInput)
	}
	args := gemmTask{dst: dst, half: bitsOf(a), b: b, n: n, k: k}
	runDense(t, denseTask{newEpilogue(t, dst, m, n, dst, bias, relu, drop), args}, m)
}

func runDense(t *Team, args denseTask, rows int) {
	p := &args.product
	p.product, p.set = t.product, t.set
	checkMatrix(p.b, p.k, p.n, shortInput)
	if rows == 0 || p.n == 0 {
		return
	}
	if p.k == 0 {
		clear(p.dst[:rows*p.n])
		do(t, &t.slots.epilogue, args.epilogueTask, rows, rowGrain(p.n))
		return
	}
	do(t, &t.slots.dense, args, rows, t.product.rows)
}

// denseTask follows a block of a product by its epilogue while the block is in
// the caches.
type denseTask struct {
	epilogueTask
	product gemmTask
}

func (d *denseTask) chunk(lo, hi int) {
	d.product.chunk(lo, hi)
	d.epilogueTask.chunk(lo, hi)
}

func newEpilogue(t *Team, dst []float32, rows, cols int, z, bias []float32, relu bool, drop *Dropout) epilogueTask {
	checkMatrix(dst, rows, cols, shortDst)
	if bias != nil && len(bias) < cols {
		panic(shortVector)
	}
	k := epilogueTask{dst: dst, z: z, bias: bias, cols: cols, relu: relu, drop: drop.active(), set: t.set}
	if k.drop {
		k.mask = drop.prepare(rows).on(t.set)
	}
	return k
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
	}
	if k.drop {
		k.mask.applyRows(k.dst, k.dst, k.cols, lo, hi)
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
// forward pass; without relu, h is not read and may be nil. It sets bias
// [cols], unless that is nil, to the gradient of the bias, which is the column
// sums of dst.
func BiasReLUDropoutGrad(t *Team, dst, bias []float32, rows, cols int, g, h []float32, relu bool, drop *Dropout) {
	if bias != nil && len(bias) < cols {
		panic(shortVector)
	}
	if !relu {
		DropoutRows(t, dst, rows, cols, g, drop)
		if bias != nil {
			ColumnSums(t, bias, rows, cols, dst, false)
		}
		return
	}
	checkMatrix(dst, rows, cols, shortDst)
	checkMatrix(g, rows, cols, shortInput)
	checkMatrix(h, rows, cols, shortInput)
	if cols == 0 {
		return
	}
	args := epilogueGradTask{columnSumsTask: newColumnSums(t, rows, cols, dst), input: g, h: h, scale: 1}
	if drop.active() {
		args.scale = drop.prepare(rows).scale
	}
	do(t, &t.slots.gradient, args, args.blocks, 1)
	if bias != nil {
		sumParts(t, bias[:cols], args.blocks, false)
	}
}

// epilogueGradTask writes what columnSumsTask sums, a few rows at a time so
// that the sum finds them in the first-level cache.
type epilogueGradTask struct {
	columnSumsTask
	input, h []float32
	scale    float32
}

// gradientElements is about how many elements are written before they are summed.
const gradientElements = 1 << 11

func (k *epilogueGradTask) chunk(lo, hi int) { k.sumWritten(lo, hi, k.gradient) }

// sumWritten is the chunk of a task that writes elements before it sums them.
func (k *epilogueGradTask) sumWritten(lo, hi int, write func(lo, hi int)) {
	step := max(gradientElements/k.cols, 1)
	for b := lo; b < hi; b++ {
		clear(rowOf(k.parts, b, k.cols))
		first, last := k.rowsOf(b)
		for r := first; r < last; r += step {
			end := min(r+step, last)
			write(r*k.cols, end*k.cols)
			k.sum(b, r, end)
		}
	}
}

// gradient writes the elements [lo, hi).
func (k *epilogueGradTask) gradient(lo, hi int) {
	dst, g, h := k.g[lo:hi], k.input[lo:hi], k.h[lo:hi]
	if k.set != avx.None {
		k.set.Gradient(dst, g, h, k.scale)
		return
	}
	for j := range dst {
		dst[j] = orZero(g[j]*k.scale, h[j] > 0)
	}
}
