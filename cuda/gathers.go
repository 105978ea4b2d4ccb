package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// SpMM implements kernels.Ops. dst must not overlap x.
func (o *Ops) SpMM(dst kernels.Mat, e kernels.Edges, x kernels.Mat, add bool) {
	rows := e.Rows()
	mustFit(dst.Rows == rows && dst.Cols == x.Cols && !dst.Half() && e.Weights.Len() == 0 && e.End.Len() >= rows && (e.RowScale.Len() == 0 || e.RowScale.Len() >= rows))
	if rows == 0 || dst.Cols == 0 {
		return
	}
	p := o.planOf(matrix{vectorPtr(e.Begin), vectorPtr(e.End), rows}, e.Cols)
	o.gather(matPtr(dst), e, x, rowRange{p.order, vectorPtr(e.Begin), vectorPtr(e.End), p.rows}, add)
	if p.cut == 0 {
		return
	}
	parts := o.scratchFloats(p.pieces * dst.Cols)
	defer o.releaseScratch()
	pieces := e
	pieces.RowScale, pieces.SelfLoops = kernels.Vector[float32]{}, false
	o.gather(parts, pieces, x, rowRange{0, p.begin, p.end, p.pieces}, false)
	count := p.cut * dst.Cols
	o.launch(kernelFor("spmmHubs", x), launch1D(count), o.newArgs().Ptr(matPtr(dst)).Ptr(parts).Ptr(p.hubs).Ptr(p.firsts).Int64(int64(count)).
		Uint32(e.Base).Ptr(vectorPtr(e.RowScale)).Ptr(vectorPtr(e.ColScale)).Int32(flag(e.SelfLoops)).Uint32(e.First).
		Ptr(matPtr(x)).Int32(int32(dst.Cols)).Int32(flag(add)))
}

// rowRange has rows of a matrix, by their order and bounds.
type rowRange struct {
	order, begin, end device.Ptr
	count             int
}

// gather calls the kernel for rows.
func (o *Ops) gather(dst device.Ptr, e kernels.Edges, x kernels.Mat, r rowRange, add bool) {
	v := vectorWidth(x)
	size := groupSize(blocks(x.Cols, v))
	o.launch(productKernel("spmm", x)+string('0'+rune(v)), launchGroups(r.count, size), o.newArgs().Ptr(dst).Ptr(r.begin).Ptr(r.end).Ptr(vectorPtr(e.Cols)).
		Ptr(r.order).Int64(int64(r.count)).Uint32(e.Base).Ptr(vectorPtr(e.RowScale)).Ptr(vectorPtr(e.ColScale)).
		Int32(flag(e.SelfLoops)).Uint32(e.First).Ptr(matPtr(x)).Int32(int32(x.Cols)).Int32(flag(add)).Int32(int32(size)))
}

// vectorWidth returns the number of adjacent elements of a row of x loaded at once.
func vectorWidth(x kernels.Mat) int {
	elem := 4
	if x.Half() {
		elem = 2
	}
	for v := 4; v > 1; v /= 2 {
		if x.Cols%v == 0 && int(matPtr(x))%(v*elem) == 0 {
			return v
		}
	}
	return 1
}

// kernelFor returns the kernel of that name for the elements of m.
func kernelFor(name string, m kernels.Mat) string {
	if m.Half() {
		return name + "Half"
	}
	return name + "Float"
}
