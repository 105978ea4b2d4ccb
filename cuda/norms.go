package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// ColumnMoments implements kernels.Ops.
func (o *Ops) ColumnMoments(dst kernels.Vector[float64], x, y kernels.Mat) {
	mustFit(isSameShape(x, y) && dst.Len() == 2*x.Cols)
	if x.Cols == 0 {
		return
	}
	count := columnParts(x)
	parts := o.scratch(8 * count * 2 * x.Cols)
	defer o.releaseScratch()
	o.launch("columnMoments", launch2D(blocks(x.Cols, warp), count),
		o.newArgs().Ptr(parts).Ptr(matPtr(x)).Ptr(matPtr(y)).Int64(int64(x.Rows)).Int32(int32(x.Cols)).Int32(int32(count)))
	o.launch("sumDoubles", launch1D(2*x.Cols), o.newArgs().Ptr(vectorPtr(dst)).Ptr(parts).Int64(int64(2*x.Cols)).Int32(int32(count)))
}

// AffineColumns implements kernels.Ops.
func (o *Ops) AffineColumns(dst, g, a, z, b, c kernels.Mat) {
	mustFit(isSameShape(dst, g) && a.Cols >= dst.Cols && c.Cols >= dst.Cols && (z.IsNil() || isSameShape(dst, z) && b.Cols >= dst.Cols))
	o.launch("affineColumns", launchWarps(dst.Rows), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(g)).Ptr(matPtr(a)).Ptr(matPtr(z)).
		Ptr(matPtr(b)).Ptr(matPtr(c)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)))
}

// LayerNorm implements kernels.Ops.
func (o *Ops) LayerNorm(dst, z, gain, bias kernels.Mat, eps float32) {
	mustFit(isSameShape(dst, z) && gain.Cols >= dst.Cols && bias.Cols >= dst.Cols)
	if dst.Cols > 0 {
		o.launch("layerNorm", launchWarps(dst.Rows), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(z)).Ptr(matPtr(gain)).Ptr(matPtr(bias)).
			Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).Float32(eps))
	}
}

// LayerNormGrad implements kernels.Ops.
func (o *Ops) LayerNormGrad(dst, gain, bias, g, z, w kernels.Mat, eps float32) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, z) && w.Cols >= dst.Cols && gain.Cols == dst.Cols && bias.Cols == dst.Cols)
	if dst.Cols == 0 {
		return
	}
	rows, cols, count := int64(dst.Rows), int32(dst.Cols), columnParts(dst)
	parts := o.scratch(8*count*2*dst.Cols + 8*dst.Rows)
	defer o.releaseScratch()
	stats := parts + device.Ptr(8*count*2*dst.Cols)
	o.launch("layerNormMoments", launchWarps(dst.Rows), o.newArgs().Ptr(stats).Ptr(matPtr(z)).Int64(rows).Int32(cols).Float32(eps))
	o.launch("layerNormParts", launch2D(blocks(dst.Cols, warp), count),
		o.newArgs().Ptr(parts).Ptr(matPtr(g)).Ptr(matPtr(z)).Ptr(stats).Int64(rows).Int32(cols).Int32(int32(count)))
	o.rounded(matPtr(bias), parts, dst.Cols, 2*dst.Cols, count)
	o.rounded(matPtr(gain), parts+device.Ptr(8*dst.Cols), dst.Cols, 2*dst.Cols, count)
	o.launch("layerNormGrad", launchWarps(dst.Rows),
		o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(g)).Ptr(matPtr(z)).Ptr(matPtr(w)).Ptr(stats).Int64(rows).Int32(cols))
}

// UnitRows implements kernels.Ops.
func (o *Ops) UnitRows(dst, z kernels.Mat, ball bool) {
	mustFit(isSameShape(dst, z))
	o.launch("unitRows", launchWarps(dst.Rows),
		o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(z)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).Int32(flag(ball)))
}

// UnitRowsGrad implements kernels.Ops.
func (o *Ops) UnitRowsGrad(dst, g, z kernels.Mat, ball bool) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, z))
	o.launch("unitRowsGrad", launchWarps(dst.Rows),
		o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(g)).Ptr(matPtr(z)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).Int32(flag(ball)))
}

// rounded adds parts of n doubles, stride apart, in order, and rounds the sums.
func (o *Ops) rounded(dst, parts device.Ptr, n, stride, count int) {
	o.launch("sumRounded", launch1D(n), o.newArgs().Ptr(dst).Ptr(parts).Int64(int64(n)).Int64(int64(stride)).Int32(int32(count)))
}

// Elements per part of a slope's gradient, and the maximum number of parts.
const (
	slopeElements = 4096
	maxSlopeParts = 1024
)

// PReLU implements kernels.Ops.
func (o *Ops) PReLU(dst, z, slope kernels.Mat) {
	mustFit(isSameShape(dst, z) && slope.Rows == 1 && slope.Cols == 1)
	n := dst.Rows * dst.Cols
	o.launch("prelu", launch1D(n), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(z)).Ptr(matPtr(slope)).Int64(int64(n)))
}

// PReLUGrad implements kernels.Ops.
func (o *Ops) PReLUGrad(dst, slope, g, z, w kernels.Mat) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, z) && slope.Rows*slope.Cols == 1 && w.Rows*w.Cols == 1)
	n := dst.Rows * dst.Cols
	count := max(1, min(n/slopeElements, maxSlopeParts))
	parts := o.scratch(8 * count)
	defer o.releaseScratch()
	o.launch("preluGrad", launch2D(count, 1),
		o.newArgs().Ptr(matPtr(dst)).Ptr(parts).Ptr(matPtr(g)).Ptr(matPtr(z)).Ptr(matPtr(w)).Int64(int64(n)).Int32(int32(count)))
	o.rounded(matPtr(slope), parts, 1, 1, count)
}

// Larger implements kernels.Ops.
func (o *Ops) Larger(dst, x kernels.Mat) {
	mustFit(isSameShape(dst, x))
	n := dst.Rows * dst.Cols
	o.launch("larger", launch1D(n), o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(x)).Int64(int64(n)))
}

// LargerGrad implements kernels.Ops.
func (o *Ops) LargerGrad(dst, g, x, m kernels.Mat, add bool) {
	mustFit(isSameShape(dst, g) && isSameShape(dst, x) && isSameShape(dst, m))
	n := dst.Rows * dst.Cols
	o.launch("largerGrad", launch1D(n),
		o.newArgs().Ptr(matPtr(dst)).Ptr(matPtr(g)).Ptr(matPtr(x)).Ptr(matPtr(m)).Int64(int64(n)).Int32(flag(add)))
}
