package kernels

import "siafu/kernels/internal/avx"

// The gradient of a layer's input, on through the ReLU and the dropout that have made it.
//
//	GradThrough   h[rows x m]  =  (a bᵀ + a2 b2ᵀ) · dropout'(…) · relu'(…),  h = dropout(relu(z))
//
// Variant: fused, a block of rows at a time, whose product lies in the second-level cache
// while it takes the place of h, which is positive exactly where ReLU let through and
// dropout kept. No matrix is written but that of the result, and none has to be there. It gives
// the bits of MatMulTransB and BiasReLUDropoutGrad.

// FusedInputGrad is an Ops that goes from the gradient of a layer's output to that of the sum after
// the activation of the layer before in one pass.
type FusedInputGrad interface {
	Ops
	// GradThrough turns h [n x m], the output of the layer before, into the gradient of what it
	// activates: that of h is a bᵀ + a2 b2ᵀ, a [n x k] and b [m x k]; a2 and b2 may be none. drop is
	// the dropout of h.
	GradThrough(h, a, b, a2, b2 Mat, drop *Dropout)
}

// GradThrough implements Through.
func (t *Team) GradThrough(h, a, b, a2, b2 Mat, drop *Dropout) {
	mustFit(h.Rows == a.Rows && a.Cols == b.Cols && h.Cols == b.Rows && a2.IsNil() == b2.IsNil())
	args := fusedGradTask{h: h.Host(), cols: h.Cols, scale: 1, set: t.set}
	if drop.active() {
		args.scale = drop.prepare(h.Rows).scale
	}
	if h.Rows == 0 || h.Cols == 0 {
		return
	}
	room := scratch(&t.floats, h.Cols*(a.Cols+a2.Cols))
	args.products[0] = args.product(t, a, b, room)
	if !a2.IsNil() {
		mustFit(h.Rows == a2.Rows && a2.Cols == b2.Cols && h.Cols == b2.Rows)
		args.products[1] = args.product(t, a2, b2, room[h.Cols*a.Cols:])
		args.products[1].add = true
	}
	do(t, &t.slots.through, args, h.Rows, t.product.rows)
}

// fusedGradTask is a sum of products, of which the second may be none, and what becomes of it.
type fusedGradTask struct {
	products [2]gemmTask
	h        []float32
	cols     int
	scale    float32
	set      avx.Set
}

// product is a bᵀ, with b turned in room.
func (k *fusedGradTask) product(t *Team, a, b Mat, room []float32) gemmTask {
	g := gemmTask{a: a.Host(), b: transpose(room[:k.cols*a.Cols], b.Host(), k.cols, a.Cols), n: k.cols, k: a.Cols}
	g.run(t, a.Rows)
	return g
}

// fusedGradCols is how many columns of a product are made at a time: as many as leave it in the
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

// gradient is that of what was activated.
func (k *fusedGradTask) gradient(dst, g, h []float32) {
	epilogue := epilogueGradTask{columnSumsTask: columnSumsTask{g: dst, set: k.set}, input: g, h: h, scale: k.scale}
	epilogue.gradient(0, len(dst))
}
