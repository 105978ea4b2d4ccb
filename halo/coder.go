package halo

import (
	"slices"

	"siafu/halo/codec"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Coder encodes and decodes blocks of rows in the memory of an Ops, with its kernels, for
// sources whose messages are blocks. Only one method may run at a time.
type Coder struct {
	ops    kernels.Ops
	copier kernels.Copier
	codec  codec.Coded
	slotBuffer
	raw kernels.Mat // [rows x cols], rows sent raw
	row []float32   // one of them
}

// NewCoder allocates buffers from a for blocks of up to the given rows and columns. It
// returns nil if o has no kernels for the codec.
func NewCoder(o kernels.Ops, c codec.Codec, rows, cols int, a *mapped.Arena) *Coder {
	coded, isCoded := c.(codec.Coded)
	if !isCoded || !o.Has(kernels.RowCoding) {
		return nil
	}
	size, _ := c.Size(rows, cols)
	k := &Coder{
		ops: o, copier: o.Copier(a), codec: coded,
		slotBuffer: slotBuffer{mapped.MakeApart(a, size), kernels.NewVector[uint8](o, a, size)},
		raw:        kernels.NewMat(o, a, rows, cols), row: make([]float32, cols),
	}
	k.copier.Pin(k.host)
	return k
}

// Append appends to dst the block of n rows, starting at row first of a message. It waits
// for these rows only, not for kernels that are called later.
func (k *Coder) Append(dst []byte, rows kernels.Outgoing, n, first int, key Key) []byte {
	size, _ := k.codec.Size(n, rows.X.Cols)
	rows.Raw = k.raw.Reshape(n, rows.X.Cols)
	rows.Rows, rows.Sums = codec.Draws(key)
	k.copier.Settle()
	k.ops.EncodeRows(k.device.Part(0, size), k.codec.Bits(), rows)
	k.copier.Mark()
	k.copier.Wait(k.copier.StartDownload(k.host[:size-k.codec.Slack()], k.device.Address()))
	clear(k.host[size-k.codec.Slack() : size])
	at := len(dst)
	dst = append(slices.Grow(dst, codec.BlockHeader+size)[:at+codec.BlockHeader], k.host[:size]...)
	dst = appendRaw(dst, k.host[:size], k.codec, k.ops, rows.Raw, k.row)
	codec.Seal(dst[at:], k.codec, n, rows.X.Cols, first)
	return dst
}

// Decode sets the rows of a matrix to the rows of a block, which must have as many.
func (k *Coder) Decode(rows kernels.Mat, b codec.Block) error {
	if err := sameShape(b, rows.Rows, rows.Cols); err != nil {
		return err
	}
	payload, err := b.Coded(k.codec, putRaw(k.ops, rows, k.row))
	if err != nil {
		return err
	}
	k.copier.Settle()
	k.copier.Mark()
	copy(k.host, payload)
	k.copier.StartUpload(k.device.Address(), k.host[:len(payload)])
	k.copier.AwaitUploads()
	k.ops.DecodeRows(kernels.Incoming{X: rows, Len: rows.Rows}, k.codec.Bits(), k.device.Part(0, len(payload)))
	return nil
}

// appendRaw appends to dst the rows of a payload that are sent raw. row is a buffer for one.
func appendRaw(dst, payload []byte, c codec.Coded, o kernels.Ops, rows kernels.Mat, row []float32) []byte {
	for i := range rows.Rows {
		if c.Raw(payload, i, rows.Rows, rows.Cols) {
			kernels.Read(o, row, rows.Part(i, i+1))
			dst = append(dst, mapped.Bytes(row[:rows.Cols])...)
		}
	}
	return dst
}

// putRaw stores rows that were sent raw at their places in rows.
func putRaw(o kernels.Ops, rows kernels.Mat, row []float32) func(i int, raw []byte) {
	return func(i int, raw []byte) {
		copy(mapped.Bytes(row), raw)
		kernels.Write(o, rows.Part(i, i+1), row)
	}
}
