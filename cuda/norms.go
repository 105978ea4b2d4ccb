package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// ColumnMoments implements kernels.Ops.
func (o *Ops) ColumnMoments(dst kernels.Vector[float64], x, y kernels.Mat) {
	fit(alike(x, y) && dst.Len() == 2*x.Cols)
	if x.Cols == 0 {
		return
	}
	count := columnParts(x)
	parts := o.room(8 * count * 2 * x.Cols)
	defer o.leave()
	o.launch("columnMoments", tall(blocks(x.Cols, warp), count), o.with().Ptr(parts).Ptr(at(x)).Ptr(at(y)).Int64(int64(x.Rows)).Int32(int32(x.Cols)).Int32(int32(count)))
	o.launch("sumDoubles", each(2*x.Cols), o.with().Ptr(start(dst)).Ptr(parts).Int64(int64(2*x.Cols)).Int32(int32(count)))
}

// AffineColumns implements kernels.Ops.
func (o *Ops) AffineColumns(dst, g, a, z, b, c kernels.Mat) {
	fit(alike(dst, g) && a.Cols >= dst.Cols && c.Cols >= dst.Cols && (z.IsNil() || alike(dst, z) && b.Cols >= dst.Cols))
	o.launch("affineColumns", warps(dst.Rows), o.with().Ptr(at(dst)).Ptr(at(g)).Ptr(at(a)).Ptr(at(z)).Ptr(at(b)).Ptr(at(c)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)))
}

// LayerNorm implements kernels.Ops.
func (o *Ops) LayerNorm(dst, z, gain, bias kernels.Mat, eps float32) {
	fit(alike(dst, z) && gain.Cols >= dst.Cols && bias.Cols >= dst.Cols)
	if dst.Cols > 0 {
		o.launch("layerNorm", warps(dst.Rows), o.with().Ptr(at(dst)).Ptr(at(z)).Ptr(at(gain)).Ptr(at(bias)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).Float32(eps))
	}
}

// LayerNormGrad implements kernels.Ops.
func (o *Ops) LayerNormGrad(dst, gain, bias, g, z, w kernels.Mat, eps float32) {
	fit(alike(dst, g) && alike(dst, z) && w.Cols >= dst.Cols && gain.Cols == dst.Cols && bias.Cols == dst.Cols)
	if dst.Cols == 0 {
		return
	}
	rows, cols, count := int64(dst.Rows), int32(dst.Cols), columnParts(dst)
	parts := o.room(8*count*2*dst.Cols + 8*dst.Rows)
	defer o.leave()
	stats := parts + device.Ptr(8*count*2*dst.Cols)
	o.launch("layerNormMoments", warps(dst.Rows), o.with().Ptr(stats).Ptr(at(z)).Int64(rows).Int32(cols).Float32(eps))
	o.launch("layerNormParts", tall(blocks(dst.Cols, warp), count), o.with().Ptr(parts).Ptr(at(g)).Ptr(at(z)).Ptr(stats).Int64(rows).Int32(cols).Int32(int32(count)))
	o.rounded(at(bias), parts, dst.Cols, 2*dst.Cols, count)
	o.rounded(at(gain), parts+device.Ptr(8*dst.Cols), dst.Cols, 2*dst.Cols, count)
	o.launch("layerNormGrad", warps(dst.Rows), o.with().Ptr(at(dst)).Ptr(at(g)).Ptr(at(z)).Ptr(at(w)).Ptr(stats).Int64(rows).Int32(cols))
}

// UnitRows implements kernels.Ops.
func (o *Ops) UnitRows(dst, z kernels.Mat, ball bool) {
	fit(alike(dst, z))
	o.launch("unitRows", warps(dst.Rows), o.with().Ptr(at(dst)).Ptr(at(z)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).Int32(flag(ball)))
}

// UnitRowsGrad implements kernels.Ops.
func (o *Ops) UnitRowsGrad(dst, g, z kernels.Mat, ball bool) {
	fit(alike(dst, g) && alike(dst, z))
	o.launch("unitRowsGrad", warps(dst.Rows), o.with().Ptr(at(dst)).Ptr(at(g)).Ptr(at(z)).Int64(int64(dst.Rows)).Int32(int32(dst.Cols)).Int32(flag(ball)))
}

// rounded adds parts of n doubles, stride apart, in order.
func (o *Ops) rounded(dst, parts device.Ptr, n, stride, count int) {
	o.launch("sumRounded", each(n), o.with().Ptr(dst).Ptr(parts).Int64(int64(n)).Int64(int64(stride)).Int32(int32(count)))
}

// Elements of a part of the gradient of a slope, and how many parts there are at most.
const (
	slopeElements = 4096
	maxSlopeParts = 1024
)

// PReLU implements kernels.Ops.
func (o *Ops) PReLU(dst, z, slope kernels.Mat) {
	fit(alike(dst, z) && slope.Rows == 1 && slope.Cols == 1)
	n := dst.Rows * dst.Cols
	o.launch("prelu", each(n), o.with().Ptr(at(dst)).Ptr(at(z)).Ptr(at(slope)).Int64(int64(n)))
}

// PReLUGrad implements kernels.Ops.
func (o *Ops) PReLUGrad(dst, slope, g, z, w kernels.Mat) {
	fit(alike(dst, g) && alike(dst, z) && slope.Rows*slope.Cols == 1 && w.Rows*w.Cols == 1)
	n := dst.Rows * dst.Cols
	count := max(1, min(n/slopeElements, maxSlopeParts))
	parts := o.room(8 * count)
	defer o.leave()
	o.launch("preluGrad", tall(count, 1), o.with().Ptr(at(dst)).Ptr(parts).Ptr(at(g)).Ptr(at(z)).Ptr(at(w)).Int64(int64(n)).Int32(int32(count)))
	o.rounded(at(slope), parts, 1, 1, count)
}

// Larger implements kernels.Ops.
func (o *Ops) Larger(dst, x kernels.Mat) {
	fit(alike(dst, x))
	n := dst.Rows * dst.Cols
	o.launch("larger", each(n), o.with().Ptr(at(dst)).Ptr(at(x)).Int64(int64(n)))
}

// LargerGrad implements kernels.Ops.
func (o *Ops) LargerGrad(dst, g, x, m kernels.Mat, add bool) {
	fit(alike(dst, g) && alike(dst, x) && alike(dst, m))
	n := dst.Rows * dst.Cols
	o.launch("largerGrad", each(n), o.with().Ptr(at(dst)).Ptr(at(g)).Ptr(at(x)).Ptr(at(m)).Int64(int64(n)).Int32(flag(add)))
}
