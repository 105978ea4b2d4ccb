package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// SparseMatMul implements kernels.Ops.
func (o *Ops) SparseMatMul(dst kernels.Mat, xs kernels.Sparse, w kernels.Mat, drop *kernels.Dropout) {
	mustFit(dst.Rows == xs.Rows() && dst.Cols == w.Cols)
	o.sparse(dst, sparseMatrix{xs.Offsets, xs.Cols, xs.Vals, false}, w, drop.Mask(dst.Rows))
}

// SparseMatMulTransA implements kernels.Ops. drop must come from SparseMatMul.
func (o *Ops) SparseMatMulTransA(dst kernels.Mat, xt *kernels.Transposed, g kernels.Mat, drop *kernels.Dropout) {
	mustFit(dst.Rows == xt.Offsets.Len()-1 && g.Rows == xt.Count && dst.Cols == g.Cols)
	o.sparse(dst, sparseMatrix{xt.Offsets, xt.Rows, xt.Vals, true}, g, drop.Mask(xt.Count))
}

// sparseMatrix is a matrix with values, or the transpose of one.
type sparseMatrix struct {
	offsets    kernels.Vector[int64]
	index      kernels.Vector[uint32]
	vals       kernels.Vector[float32]
	transposed bool
}

// sparse computes dst = D(m) x.
func (o *Ops) sparse(dst kernels.Mat, m sparseMatrix, x kernels.Mat, drop kernels.Mask) {
	if dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	begin := vectorPtr(m.offsets)
	end := begin + 8
	p := o.planOf(matrix{begin, end, dst.Rows}, m.index)
	size := groupSize(dst.Cols)
	run := func(to device.Ptr, r rowRange, line device.Ptr) {
		args := o.newArgs().Ptr(to).Ptr(r.begin).Ptr(r.end).Ptr(vectorPtr(m.index)).Ptr(vectorPtr(m.vals)).Ptr(r.order).Ptr(line).
			Int64(int64(r.count)).Ptr(matPtr(x)).Int32(int32(dst.Cols)).Int32(flag(m.transposed)).Int32(int32(size))
		o.launch("sparseProduct", launchGroups(r.count, size), mask(args, drop))
	}
	run(matPtr(dst), rowRange{p.order, begin, end, p.rows}, 0)
	o.hubSums(p, matPtr(dst), dst.Cols, false, run)
}

// SparseToDense implements kernels.Ops.
func (o *Ops) SparseToDense(dst kernels.Mat, xs kernels.Sparse, drop *kernels.Dropout) {
	o.spread(dst, xs, 0, drop.Mask(dst.Rows))
}

// SpreadColumns implements kernels.Ops.
func (o *Ops) SpreadColumns(dst kernels.Mat, from int, xs kernels.Sparse) {
	o.spread(dst, xs, from, kernels.Mask{})
}

// spread sets dst to the columns from first on of D(xs).
func (o *Ops) spread(dst kernels.Mat, xs kernels.Sparse, first int, drop kernels.Mask) {
	mustFit(dst.Rows == xs.Rows() && !dst.Half())
	if dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	o.Clear(dst)
	args := o.newArgs().Ptr(matPtr(dst)).Ptr(vectorPtr(xs.Offsets)).Ptr(vectorPtr(xs.Cols)).Ptr(vectorPtr(xs.Vals)).
		Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).Uint32(uint32(first))
	o.launch("sparseToDense", launchWarps(dst.Rows), mask(args, drop))
}
