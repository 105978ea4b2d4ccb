package cuda

import (
	"siafu/cuda/device"
	"siafu/kernels"
)

// halfBits is the number of bits of a BF16 element.
const halfBits = 16

// EncodeRows implements kernels.Ops.
func (o *Ops) EncodeRows(dst kernels.Vector[uint8], bits int, r kernels.Outgoing) {
	n, cols := r.Raw.Rows, r.X.Cols
	mustFit(r.Raw.Cols == cols && dst.Len() >= codedBytes(n, cols, bits) && (r.Index.Len() == n || r.Index.Len() == 0 && n <= r.X.Rows) &&
		(r.Lost.IsNil() || isSameShape(r.Lost, r.Raw)) && (r.IDs.Len() == 0 || r.IDs.Len() == n))
	if bits == halfBits {
		a := placed(o.newArgs().Ptr(vectorPtr(dst)).Int64(int64(n)).Int32(int32(cols)), r.X, r.More, r.Index)
		o.launch("encodeHalf", launchWarps(n), a.Ptr(matPtr(r.Lost)))
		return
	}
	key, epoch, layer := r.Rows.Counters()
	sums, _, sumsLayer := r.Sums.Counters()
	each := kernels.GridRows(cols)
	a := placed(grids(o.newArgs(), dst, bits, n, cols), r.X, r.More, r.Index)
	o.launch("encodeGrid", launchWarps((n+each-1)/each), a.Ptr(matPtr(r.Lost)).Ptr(matPtr(r.Raw)).Ptr(vectorPtr(r.IDs)).
		Uint32(key[0]).Uint32(key[1]).Uint32(epoch).Uint32(layer).Uint32(sums[1]).Uint32(sumsLayer))
}

// DecodeRows implements kernels.Ops.
func (o *Ops) DecodeRows(r kernels.Incoming, bits int, src kernels.Vector[uint8]) {
	n, cols := r.Len, r.X.Cols
	mustFit(src.Len() >= codedBytes(n, cols, bits) && (r.Index.Len() == n || r.Index.Len() == 0 && n <= r.X.Rows) &&
		(r.Raw.IsNil() || r.Raw.Rows == n && r.Raw.Cols == cols))
	if bits == halfBits {
		a := placed(o.newArgs().Ptr(vectorPtr(src)).Int64(int64(n)).Int32(int32(cols)), r.X, r.More, r.Index)
		o.launch("decodeHalf", launchWarps(n), a.Int32(flag(r.Add)))
		return
	}
	a := placed(grids(o.newArgs(), src, bits, n, cols), r.X, r.More, r.Index)
	o.launch("decodeGrid", launchWarps(n), a.Ptr(matPtr(r.Raw)).Int32(flag(r.Add)))
}

// codedBytes returns the bytes of n encoded rows, without slack.
func codedBytes(n, cols, bits int) int {
	if bits == halfBits {
		return 2 * n * cols
	}
	each := kernels.GridRows(cols)
	return (n+each-1)/each*4 + n*kernels.CodeBytes(cols, bits)
}

// grids appends the addresses of the grids and codes of n rows, and their shape.
func grids(a *device.Args, bytes kernels.Vector[uint8], bits, n, cols int) *device.Args {
	each, p := kernels.GridRows(cols), vectorPtr(bytes)
	many := device.Ptr((n + each - 1) / each)
	return a.Ptr(p).Ptr(p + 2*many).Int32(int32(each)).Ptr(p + 4*many).Int32(int32(bits)).Int64(int64(n)).Int32(int32(cols))
}

// placed appends x and more, and an index of both.
func placed(a *device.Args, x, more kernels.Mat, index kernels.Vector[uint32]) *device.Args {
	return a.Ptr(matPtr(x)).Int64(int64(x.Rows)).Ptr(matPtr(more)).Ptr(vectorPtr(index))
}
