package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

var _ kernels.Wire = (*Ops)(nil)

// halfBits is the bits of an element of BF16.
const halfBits = 16

// EncodeRows implements kernels.Wire.
func (o *Ops) EncodeRows(dst kernels.Vector[uint8], bits int, r kernels.Outgoing) {
	n, cols := r.Raw.Rows, r.X.Cols
	fit(r.Raw.Cols == cols && dst.Len() >= codedBytes(n, cols, bits) && (r.Index.Len() == n || r.Index.Len() == 0 && n <= r.X.Rows) &&
		(r.Lost.IsNil() || alike(r.Lost, r.Raw)) && (r.IDs.Len() == 0 || r.IDs.Len() == n))
	if bits == halfBits {
		a := placed(o.with().Ptr(start(dst)).Int64(int64(n)).Int32(int32(cols)), r.X, r.More, r.Index)
		o.launch("encodeHalf", warps(n), a.Ptr(at(r.Lost)))
		return
	}
	key, epoch, layer := r.Rows.Counters()
	sums, _, sumsLayer := r.Sums.Counters()
	each := kernels.GridRows(cols)
	a := placed(grids(o.with(), dst, bits, n, cols), r.X, r.More, r.Index)
	o.launch("encodeGrid", warps((n+each-1)/each), a.Ptr(at(r.Lost)).Ptr(at(r.Raw)).Ptr(start(r.IDs)).
		Uint32(key[0]).Uint32(key[1]).Uint32(epoch).Uint32(layer).Uint32(sums[1]).Uint32(sumsLayer))
}

// DecodeRows implements kernels.Wire.
func (o *Ops) DecodeRows(r kernels.Incoming, bits int, src kernels.Vector[uint8]) {
	n, cols := r.Len, r.X.Cols
	fit(src.Len() >= codedBytes(n, cols, bits) && (r.Index.Len() == n || r.Index.Len() == 0 && n <= r.X.Rows) &&
		(r.Raw.IsNil() || r.Raw.Rows == n && r.Raw.Cols == cols))
	if bits == halfBits {
		a := placed(o.with().Ptr(start(src)).Int64(int64(n)).Int32(int32(cols)), r.X, r.More, r.Index)
		o.launch("decodeHalf", warps(n), a.Int32(flag(r.Add)))
		return
	}
	a := placed(grids(o.with(), src, bits, n, cols), r.X, r.More, r.Index)
	o.launch("decodeGrid", warps(n), a.Ptr(at(r.Raw)).Int32(flag(r.Add)))
}

// codedBytes is what n rows take, without slack.
func codedBytes(n, cols, bits int) int {
	if bits == halfBits {
		return 2 * n * cols
	}
	each := kernels.GridRows(cols)
	return (n+each-1)/each*4 + n*kernels.CodeBytes(cols, bits)
}

// grids adds where the grids and the codes of n rows lie, and what they are.
func grids(a *device.Args, bytes kernels.Vector[uint8], bits, n, cols int) *device.Args {
	each, p := kernels.GridRows(cols), start(bytes)
	many := device.Ptr((n + each - 1) / each)
	return a.Ptr(p).Ptr(p + 2*many).Int32(int32(each)).Ptr(p + 4*many).Int32(int32(bits)).Int64(int64(n)).Int32(int32(cols))
}

// placed adds x and more, and an index of both.
func placed(a *device.Args, x, more kernels.Mat, index kernels.Vector[uint32]) *device.Args {
	return a.Ptr(at(x)).Int64(int64(x.Rows)).Ptr(at(more)).Ptr(start(index))
}
