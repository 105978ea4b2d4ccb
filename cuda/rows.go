package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// PackRows implements kernels.Ops.
func (o *Ops) PackRows(dst kernels.Mat, index kernels.Vector[uint32], x, more kernels.Mat) {
	mustFit(dst.Rows == index.Len() && dst.Cols == x.Cols && !dst.Half() && !x.Half())
	o.launch("packRows", launchWarps(dst.Rows), o.newArgs().Ptr(matPtr(dst)).Ptr(vectorPtr(index)).Int64(int64(dst.Rows)).
		Ptr(matPtr(x)).Int64(int64(x.Rows)).Ptr(matPtr(more)).Int32(int32(dst.Cols)))
}

// AddRows implements kernels.Ops.
func (o *Ops) AddRows(dst, more kernels.Mat, index kernels.Vector[uint32], rows kernels.Mat) {
	mustFit(rows.Rows == index.Len() && rows.Cols == dst.Cols && !dst.Half() && !rows.Half())
	o.launch("addRows", launchWarps(rows.Rows), o.newArgs().Ptr(matPtr(dst)).Int64(int64(dst.Rows)).Ptr(matPtr(more)).
		Ptr(vectorPtr(index)).Int64(int64(rows.Rows)).Ptr(matPtr(rows)).Int32(int32(rows.Cols)))
}

// CopyColumns implements kernels.Ops.
func (o *Ops) CopyColumns(dst, x kernels.Mat, from int) {
	mustFit(dst.Rows == x.Rows && from >= 0 && from+dst.Cols <= x.Cols && !dst.Half() && !x.Half())
	o.copyBlock(dst, 0, x, from, dst.Cols)
}

// PutColumns implements kernels.Ops.
func (o *Ops) PutColumns(dst kernels.Mat, from int, x kernels.Mat) {
	mustFit(dst.Rows == x.Rows && from >= 0 && from+x.Cols <= dst.Cols && !x.Half())
	if dst.Half() {
		o.narrow(dst, from, x, kernels.Vector[float32]{})
		return
	}
	o.copyBlock(dst, from, x, 0, x.Cols)
}

// copyBlock copies cols columns, from column second of x on, to dst from column first on.
func (o *Ops) copyBlock(dst kernels.Mat, first int, x kernels.Mat, second, cols int) {
	if cols == 0 || dst.Rows == 0 {
		return
	}
	o.launch("copyBlock", launchWarps(dst.Rows), o.newArgs().Ptr(matPtr(dst)+4*device.Ptr(first)).Int64(int64(dst.Cols)).
		Ptr(matPtr(x)+4*device.Ptr(second)).Int64(int64(x.Cols)).Int64(int64(dst.Rows)).Int32(int32(cols)))
}

// Narrow implements kernels.Ops.
func (o *Ops) Narrow(dst, x kernels.Mat, scale kernels.Vector[float32]) {
	mustFit(isSameShape(dst, x) && dst.Half() && !x.Half() && (scale.Len() == 0 || scale.Len() >= x.Rows))
	o.narrow(dst, 0, x, scale)
}

// narrow rounds x, each row times its scale, to dst from column first on.
func (o *Ops) narrow(dst kernels.Mat, first int, x kernels.Mat, scale kernels.Vector[float32]) {
	if x.Cols == 0 || x.Rows == 0 {
		return
	}
	o.launch("narrow", launchWarps(x.Rows), o.newArgs().Ptr(matPtr(dst)+2*device.Ptr(first)).Int64(int64(dst.Cols)).
		Ptr(matPtr(x)).Int64(int64(x.Rows)).Int32(int32(x.Cols)).Ptr(vectorPtr(scale)))
}
