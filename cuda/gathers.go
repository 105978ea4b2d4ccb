package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// SpMM implements kernels.Ops. dst must not overlap x.
func (o *Ops) SpMM(dst kernels.Mat, e kernels.Edges, x kernels.Mat, add bool) {
	rows := e.Rows()
	fit(dst.Rows == rows && dst.Cols == x.Cols && !dst.Half() && e.Weights.Len() == 0 && e.End.Len() >= rows && (e.RowScale.Len() == 0 || e.RowScale.Len() >= rows))
	if rows == 0 || dst.Cols == 0 {
		return
	}
	p := o.planOf(matrix{start(e.Begin), start(e.End), rows}, e.Cols)
	o.gather(at(dst), e, x, rowsOf{p.order, start(e.Begin), start(e.End), p.rows}, add)
	if p.cut == 0 {
		return
	}
	parts := o.floats(p.pieces * dst.Cols)
	defer o.leave()
	pieces := e
	pieces.RowScale, pieces.SelfLoops = kernels.Vector[float32]{}, false
	o.gather(parts, pieces, x, rowsOf{0, p.begin, p.end, p.pieces}, false)
	count := p.cut * dst.Cols
	o.launch(element("spmmHubs", x), each(count), o.with().Ptr(at(dst)).Ptr(parts).Ptr(p.hubs).Ptr(p.firsts).Int64(int64(count)).
		Uint32(e.Base).Ptr(start(e.RowScale)).Ptr(start(e.ColScale)).Int32(flag(e.SelfLoops)).Uint32(e.First).
		Ptr(at(x)).Int32(int32(dst.Cols)).Int32(flag(add)))
}

// rowsOf are N rows of a matrix, by their order and bounds.
type rowsOf struct {
	order, begin, end device.Ptr
	count             int
}

// gather is a call of the kernel for rows.
func (o *Ops) gather(dst device.Ptr, e kernels.Edges, x kernels.Mat, r rowsOf, add bool) {
	v := together(x)
	size := groupSize(blocks(x.Cols, v))
	o.launch(variant("spmm", x)+string('0'+rune(v)), groups(r.count, size), o.with().Ptr(dst).Ptr(r.begin).Ptr(r.end).Ptr(start(e.Cols)).
		Ptr(r.order).Int64(int64(r.count)).Uint32(e.Base).Ptr(start(e.RowScale)).Ptr(start(e.ColScale)).
		Int32(flag(e.SelfLoops)).Uint32(e.First).Ptr(at(x)).Int32(int32(x.Cols)).Int32(flag(add)).Int32(int32(size)))
}

// together is how many neighbouring elements of a row of x are loaded as one.
func together(x kernels.Mat) int {
	elem := 4
	if x.Half() {
		elem = 2
	}
	for v := 4; v > 1; v /= 2 {
		if x.Cols%v == 0 && int(at(x))%(v*elem) == 0 {
			return v
		}
	}
	return 1
}

// element is the kernel of that name for the elements of m.
func element(name string, m kernels.Mat) string {
	if m.Half() {
		return name + "Half"
	}
	return name + "Float"
}
