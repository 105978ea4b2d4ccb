package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// MatMul implements kernels.Ops. dst must not overlap a or b.
func (o *Ops) MatMul(dst, a, b kernels.Mat, add bool) {
	mustFit(dst.Rows == a.Rows && a.Cols == b.Rows && dst.Cols == b.Cols && !dst.Half() && !b.Half())
	if !o.gemm(dst, a, b, false, false, a.Cols, add) {
		o.multiply(productKernel("matMul", a), dst, a, b, a.Cols, add)
	}
}

// MatMulTransB implements kernels.Ops. dst must not overlap a or b.
func (o *Ops) MatMulTransB(dst, a, b kernels.Mat, add bool) {
	mustFit(dst.Rows == a.Rows && a.Cols == b.Cols && dst.Cols == b.Rows && !dst.Half() && !a.Half() && !b.Half())
	if !o.gemm(dst, a, b, false, true, a.Cols, add) {
		o.multiply("matMulTransB", dst, a, b, a.Cols, add)
	}
}

// MatMulTransA implements kernels.Ops. dst must not overlap a or b.
func (o *Ops) MatMulTransA(dst, a, b kernels.Mat, add bool) {
	mustFit(dst.Rows == a.Cols && a.Rows == b.Rows && dst.Cols == b.Cols && !dst.Half() && !b.Half())
	if o.gemm(dst, a, b, true, false, a.Rows, add) {
		return
	}
	name, size := productKernel("matMulTransA", a), dst.Rows*dst.Cols
	splits := splitsOf(a.Rows, size)
	if splits == 1 {
		o.multiply(name, dst, a, b, a.Rows, add)
		return
	}
	parts := o.scratchFloats(splits * size)
	defer o.releaseScratch()
	o.product(name, parts, dst, a, b, a.Rows, splits, false)
	o.sumParts(matPtr(dst), parts, size, splits, add)
}

// gemm computes dst (+)= op(a) op(b), sums of k terms, with the rank's library, and reports
// whether it did. It returns false if there is no library, a is BF16, or the product is empty.
//
// A row-major matrix is the transpose of a column-major one in the same memory, and dstᵀ =
// op(b)ᵀ op(a)ᵀ: operands are swapped and no data is moved.
func (o *Ops) gemm(dst, a, b kernels.Mat, transA, transB bool, k int, add bool) bool {
	if o.blas == nil || a.Half() || dst.Rows == 0 || dst.Cols == 0 || k == 0 {
		return false
	}
	o.check(o.blas.Gemm(device.Gemm{
		TransA: transB, TransB: transA, M: dst.Cols, N: dst.Rows, K: k,
		A: matPtr(b), LDA: b.Cols, B: matPtr(a), LDB: a.Cols, C: matPtr(dst), LDC: dst.Cols, Beta: float32(flag(add)),
	}))
	return true
}

// productKernel returns the kernel of that name for the elements of m.
func productKernel(name string, m kernels.Mat) string {
	if m.Half() {
		return name + "Half"
	}
	return name
}

// Splits of a long sum: enough to fill a device, few enough that adding their parts, each of
// the size of the result, is cheap.
const (
	splitRows      = 512
	maxSplits      = 64
	maxPartsFloats = 1 << 22
)

// splitsOf returns the number of splits of a sum over rows, if each has a part of the given
// size.
func splitsOf(rows, part int) int {
	return max(1, min(rows/splitRows, maxSplits, maxPartsFloats/max(part, 1)))
}

// multiply runs a product with sums of k terms.
func (o *Ops) multiply(name string, dst, a, b kernels.Mat, k int, add bool) {
	o.product(name, matPtr(dst), dst, a, b, k, 1, add)
}

// product writes a product of dst's shape to an address, in splits parts.
func (o *Ops) product(name string, to device.Ptr, dst, a, b kernels.Mat, k, splits int, add bool) {
	args := o.newArgs().Ptr(to).Ptr(matPtr(a)).Ptr(matPtr(b)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).Int64(int64(k)).
		Int32(int32(splits)).Int32(flag(add))
	suffix, l := tiles(dst, splits)
	o.launch(name+suffix, l, args)
}

// tiles returns the grid of a product of dst's shape, and the suffix of the kernels with its
// tile: 64 x 64 elements, or 16 x 16 for a narrow dst.
func tiles(dst kernels.Mat, splits int) (suffix string, l device.Launch) {
	suffix, side := "4", 64
	if min(dst.Rows, dst.Cols) <= 32 {
		suffix, side = "1", 16
	}
	return suffix, device.Launch{Grid: [3]int{blocks(dst.Rows, side), blocks(dst.Cols, side), splits}, Block: [3]int{blockThreads, 1, 1}}
}

// sumParts adds parts of the given size in order.
func (o *Ops) sumParts(dst, parts device.Ptr, size, count int, add bool) {
	o.launch("sumParts", launch1D(size), o.newArgs().Ptr(dst).Ptr(parts).Int64(int64(size)).Int32(int32(count)).Int32(flag(add)))
}

// With at least apartTerms terms in a sum, a library product plus a separate epilogue is faster
// than the fused kernel. A sum of k terms takes 2k flops in the library, and about twice that time
// in the fused kernel. The epilogue moves 8 bytes per element, the time of 80 flops on a device
// with 10 flops per byte: 2k = 80 for k = 40.
const apartTerms = 40

// MatMulBiasReLUDropout implements kernels.Ops. dst must not overlap a or b.
func (o *Ops) MatMulBiasReLUDropout(dst, a, b, bias kernels.Mat, relu bool, drop *kernels.Dropout) {
	mustFit(dst.Rows == a.Rows && a.Cols == b.Rows && dst.Cols == b.Cols && !dst.Half() && !b.Half() &&
		(bias.IsNil() || bias.Cols >= dst.Cols))
	if a.Cols >= apartTerms && o.gemm(dst, a, b, false, false, a.Cols, false) {
		o.BiasReLUDropout(dst, dst, bias, relu, drop)
		return
	}
	args := o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(a)).Ptr(matPtr(b)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).Int64(int64(a.Cols)).
		Ptr(matPtr(bias)).Int32(flag(relu))
	suffix, l := tiles(dst, 1)
	o.launch(productKernel("dense", a)+suffix, l, mask(args, drop.Mask(dst.Rows)))
}

// BiasReLUDropout implements kernels.Ops.
func (o *Ops) BiasReLUDropout(dst, z, bias kernels.Mat, relu bool, drop *kernels.Dropout) {
	name := "biasDropout"
	if relu {
		name = "biasReLUDropout"
	}
	o.forward(name, dst, z, bias, drop)
}

// BiasELUDropout implements kernels.Ops.
func (o *Ops) BiasELUDropout(dst, z, bias kernels.Mat, drop *kernels.Dropout) {
	mustFit(!bias.IsNil())
	o.forward("biasELUDropout", dst, z, bias, drop)
}

// forward runs an epilogue.
func (o *Ops) forward(name string, dst, z, bias kernels.Mat, drop *kernels.Dropout) {
	mustFit(isSameShape(dst, z) && (bias.IsNil() || bias.Cols >= dst.Cols))
	if dst.Cols == 0 {
		return
	}
	args := o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(z)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).Ptr(matPtr(bias))
	o.launch(name, launchWarps(dst.Rows), mask(args, drop.Mask(dst.Rows)))
}

// DropoutRows implements kernels.Ops. dst may be x.
func (o *Ops) DropoutRows(dst, x kernels.Mat, drop *kernels.Dropout) {
	if drop.Mask(dst.Rows).Scale == 0 {
		o.Copy(dst, x)
		return
	}
	o.forward("biasDropout", dst, x, kernels.Mat{}, drop)
}

// BiasReLUDropoutGrad implements kernels.Ops.
func (o *Ops) BiasReLUDropoutGrad(dst, bias, g, h kernels.Mat, relu bool, drop *kernels.Dropout) {
	mustFit(isSameShape(dst, g) && (!relu || isSameShape(dst, h)) && (bias.IsNil() || bias.Cols >= dst.Cols))
	if !relu {
		o.DropoutRows(dst, g, drop)
		if !bias.IsNil() {
			o.columnSums(matPtr(bias), dst, false)
		}
		return
	}
	o.backward("reluGradient", dst, bias, g, h, drop, func(a *device.Args) {})
}

// BiasELUDropoutGrad implements kernels.Ops.
func (o *Ops) BiasELUDropoutGrad(dst, bias, g, h kernels.Mat, drop *kernels.Dropout) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, h) && !bias.IsNil() && bias.Cols >= dst.Cols)
	kept := float32(1)
	if drop != nil && drop.P > 0 {
		kept = float32(1 - drop.P)
	}
	o.backward("eluGradient", dst, bias, g, h, drop, func(a *device.Args) { a.Float32(kept) })
}

// backward computes the gradient of an epilogue, and its column sums unless bias is none. more
// appends the kernel's last arguments.
func (o *Ops) backward(name string, dst, bias, g, h kernels.Mat, drop *kernels.Dropout, more func(a *device.Args)) {
	if dst.Cols == 0 {
		return
	}
	scale := drop.Mask(dst.Rows).Scale
	if scale == 0 {
		scale = 1
	}
	count := columnParts(dst)
	var parts device.Ptr
	if !bias.IsNil() {
		parts = o.scratchFloats(count * dst.Cols)
		defer o.releaseScratch()
	}
	args := o.newArgs().Ptr(matPtr(dst)).Ptr(parts).Ptr(matPtr(g)).Ptr(matPtr(h)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).
		Int32(int32(count)).Float32(scale)
	more(args)
	o.launch(name, launch2D(blocks(dst.Cols, warp), count), args)
	if !bias.IsNil() {
		o.sumParts(matPtr(bias), parts, dst.Cols, count, false)
	}
}

// Rows per part of column sums, and the maximum number of parts.
const (
	columnRows     = 32
	maxColumnParts = 256
)

// columnParts returns the number of parts of g's rows.
func columnParts(g kernels.Mat) int {
	return max(1, min(g.Rows/columnRows, maxColumnParts, maxPartsFloats/max(g.Cols, 1)))
}

// ColumnSums implements kernels.Ops.
func (o *Ops) ColumnSums(dst, g kernels.Mat, add bool) {
	mustFit(dst.Rows == 1 && dst.Cols == g.Cols)
	o.columnSums(matPtr(dst), g, add)
}

func (o *Ops) columnSums(dst device.Ptr, g kernels.Mat, add bool) {
	if g.Cols == 0 {
		return
	}
	count := columnParts(g)
	parts := o.scratchFloats(count * g.Cols)
	defer o.releaseScratch()
	args := o.newArgs().Ptr(parts).Ptr(matPtr(g)).Int64(int64(g.Rows)).Int32(int32(g.Cols)).Int32(int32(count))
	o.launch("columnSums", launch2D(blocks(g.Cols, warp), count), args)
	o.sumParts(dst, parts, g.Cols, count, add)
}

// Add implements kernels.Ops.
func (o *Ops) Add(dst, x kernels.Mat) {
	mustFit(isSameShape(dst, x))
	n := dst.Rows * dst.Cols
	o.launch("add", launch1D(n), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(x)).Int64(int64(n)))
}

// Blend implements kernels.Ops.
func (o *Ops) Blend(dst kernels.Mat, keep float32, x kernels.Mat, share float32) {
	mustFit(isSameShape(dst, x))
	n := dst.Rows * dst.Cols
	o.launch("blend", launch1D(n), o.newArgs().Ptr(matPtr(dst)).Float32(keep).Ptr(matPtr(x)).Float32(share).Int64(int64(n)))
}

// Activate implements kernels.Ops.
func (o *Ops) Activate(dst, z kernels.Mat, f kernels.Activation) {
	mustFit(isSameShape(dst, z))
	n := dst.Rows * dst.Cols
	o.launch("activate", launch1D(n), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(z)).Int32(int32(f)).Int64(int64(n)))
}

// ActivateGrad implements kernels.Ops.
func (o *Ops) ActivateGrad(dst, g, z kernels.Mat, f kernels.Activation) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, z))
	n := dst.Rows * dst.Cols
	o.launch("activateGrad", launch1D(n), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(g)).Ptr(matPtr(z)).Int32(int32(f)).Int64(int64(n)))
}

// MeanHeads implements kernels.Ops.
func (o *Ops) MeanHeads(dst kernels.Mat, heads int, x, bias kernels.Mat) {
	mustFit(heads >= 1 && dst.Rows == x.Rows && x.Cols == heads*dst.Cols && bias.Cols >= dst.Cols)
	n := dst.Rows * dst.Cols
	o.launch("meanHeads", launch1D(n), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(x)).Ptr(matPtr(bias)).Int64(int64(n)).
		Int32(int32(heads)).Int32(int32(dst.Cols)).Float32(1/float32(heads)))
}

// MeanHeadsGrad implements kernels.Ops.
func (o *Ops) MeanHeadsGrad(dst kernels.Mat, heads int, g kernels.Mat) {
	mustFit(heads >= 1 && dst.Rows == g.Rows && dst.Cols == heads*g.Cols)
	n := dst.Rows * dst.Cols
	o.launch("meanHeadsGrad", launch1D(n), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(g)).Int64(int64(n)).
		Int32(int32(heads)).Int32(int32(g.Cols)).Float32(1/float32(heads)))
}

// Step implements kernels.Ops.
func (o *Ops) Step(optimizer kernels.Optimizer, step int, w, grad kernels.Mat, state []kernels.Mat, decay bool) {
	mustFit(isSameShape(w, grad) && step >= 1 && len(state) >= optimizer.StateSlots())
	for _, s := range state[:optimizer.StateSlots()] {
		mustFit(isSameShape(s, w))
	}
	n := w.Rows * w.Cols
	args := o.newArgs().Ptr(matPtr(w)).Ptr(matPtr(grad))
	c := optimizer.Constants(step, decay)
	switch {
	case c.Adaptive:
		args.Ptr(matPtr(state[0])).Ptr(matPtr(state[1])).Int64(int64(n))
		for _, x := range [...]float32{c.Adam.Shrink, c.Adam.L2, c.Adam.B1, c.Adam.C1, c.Adam.B2, c.Adam.C2,
			c.Adam.Size, c.Adam.Root, c.Adam.Eps} {
			args.Float32(x)
		}
		o.launch("stepAdam", launch1D(n), args)
	case c.SGD.Momentum == 0:
		o.launch("stepSGD", launch1D(n), args.Int64(int64(n)).Float32(c.SGD.LR).Float32(c.SGD.Decay))
	default:
		o.launch("stepMomentum", launch1D(n),
			args.Ptr(matPtr(state[0])).Int64(int64(n)).Float32(c.SGD.LR).Float32(c.SGD.Momentum).Float32(c.SGD.Decay))
	}
}
