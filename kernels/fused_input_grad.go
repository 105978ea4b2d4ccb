package kernels

import "siafu/kernels/internal/avx"

// The gradient of a layer's input, continued through the ReLU and dropout that produced it.
//
//	GradThrough   h[rows x m]  =  (a bᵀ + a2 b2ᵀ) · dropout'(…) · relu'(…),  h = dropout(relu(z))
//
// Variant: fused, a block of rows at a time. The block's product stays in the second-level
// cache while it replaces h, which is positive exactly where ReLU and dropout pass an element.
// Only the result matrix is written. The bits equal those of MatMulTransB and
// BiasReLUDropoutGrad.

// GradThrough implements Ops.
func (t *Team) GradThrough(h, a, b, a2, b2 Mat, drop *Dropout) {
	mustFit(h.Rows == a.Rows && a.Cols == b.Cols && h.Cols == b.Rows && a2.IsNil() == b2.IsNil())
	args := fusedGradTask{h: h.Host(), cols: h.Cols, scale: 1, set: t.set}
	if drop.active() {
		args.scale = drop.prepare(h.Rows).scale
	}
	if h.Rows == 0 || h.Cols == 0 {
		return
	}
	buffer := scratch(&t.floats, h.Cols*(a.Cols+a2.Cols))
	args.products[0] = args.product(t, a, b, buffer, 0)
	if !a2.IsNil() {
		mustFit(h.Rows == a2.Rows && a2.Cols == b2.Cols && h.Cols == b2.Rows)
		args.products[1] = args.product(t, a2, b2, buffer[h.Cols*a.Cols:], 1)
		args.products[1].add = true
	}
	do(t, args, h.Rows, t.product.rows)
}

// fusedGradTask is a sum of one or two products, and its epilogue.
type fusedGradTask struct {
	products [2]gemmTask
	h        []float32
	cols     int
	scale    float32
	set      avx.Set
}

// product returns the task a bᵀ, with b transposed in buffer.
func (k *fusedGradTask) product(t *Team, a, b Mat, buffer []float32, which int) gemmTask {
	g := gemmTask{a: a.Host(), b: transpose(buffer[:k.cols*a.Cols], b.Host(), k.cols, a.Cols), n: k.cols, k: a.Cols}
	g.run(t, a.Rows, which)
	return g
}

// fusedGradCols is the number of columns computed at a time: their product fits in the
// second-level cache.
const fusedGradCols = 1 << 10

func (k *fusedGradTask) chunk(lo, hi int) {
	buffer := widenPool.Get().(*[]float32)
	defer widenPool.Put(buffer)
	for col := 0; col < k.cols; col += fusedGradCols {
		w := min(fusedGradCols, k.cols-col)
		sum := scratch(buffer, (hi-lo)*w)
		for i := range k.products {
			g := &k.products[i]
			if g.k == 0 {
				clearUnless(i > 0, sum)
				continue
			}
			g.into(sum, lo, hi, col, w)
		}
		if w == k.cols {
			h := k.h[lo*w : hi*w]
			k.gradient(h, sum, h)
			continue
		}
		for r := lo; r < hi; r++ {
			h := rowOf(k.h, r, k.cols)[col : col+w]
			k.gradient(h, rowOf(sum, r-lo, w), h)
		}
	}
}

// gradient computes the gradient of the activation's input.
func (k *fusedGradTask) gradient(dst, g, h []float32) {
	epilogue := epilogueGradTask{columnSumsTask: columnSumsTask{g: dst, set: k.set}, input: g, h: h, scale: k.scale}
	epilogue.gradient(0, len(dst))
}
