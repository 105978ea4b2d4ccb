package halo

import (
	"fmt"

	"siafu/internal/mapped"
	"siafu/internal/wire"
)

// Encoded state, on disk and between processes, has numbers of 8 bytes, little-endian, and
// arrays with their length in bytes before them. It has the lists CodecErrors, StoredRows,
// Pending and, unless it is empty, OwnRows, each with its length before it.

// Encode appends the encoded state to dst.
func (l *SourceState) Encode(dst []byte) []byte {
	w := wire.Writer{B: dst}
	w.Numbers(len(l.CodecErrors))
	for _, x := range l.CodecErrors {
		w.Numbers(x.Layer, x.Cols, wire.Bit(x.Backward))
		w.Bytes(mapped.Bytes(x.Rows))
	}
	writeStored(&w, l.StoredRows)
	w.Numbers(len(l.Pending))
	for _, x := range l.Pending {
		w.Numbers(x.Layer, x.Part, x.Epoch, x.Cols, wire.Bit(x.Backward), len(x.Blocks))
		for _, b := range x.Blocks {
			w.Numbers(b.From)
			w.Bytes(b.Data)
		}
	}
	if len(l.OwnRows) > 0 {
		writeStored(&w, l.OwnRows)
	}
	return w.B
}

// DecodeSourceState decodes the output of Encode. It never trusts the bytes: it returns an
// error for invalid input.
func DecodeSourceState(b []byte) (l SourceState, err error) {
	r := wire.Reader{Rest: b}
	for range r.Count() {
		l.CodecErrors = append(l.CodecErrors,
			CodecError{Layer: r.Number(), Cols: r.Number(), Backward: r.Flag(), Rows: wire.Array[float32](&r, -1)})
	}
	l.StoredRows = readStored(&r)
	for range r.Count() {
		h := PendingRows{Layer: r.Number(), Part: r.Number(), Epoch: r.Number(), Cols: r.Number(), Backward: r.Flag()}
		for range r.Count() {
			h.Blocks = append(h.Blocks, RankBlock{From: r.Number(), Data: wire.Array[byte](&r, -1)})
		}
		l.Pending = append(l.Pending, h)
	}
	if len(r.Rest) > 0 {
		l.OwnRows = readStored(&r)
	}
	if r.Err != nil || len(r.Rest) > 0 {
		return SourceState{}, fmt.Errorf("halo: invalid partition state (%d bytes)", len(b))
	}
	return l, nil
}

func writeStored(w *wire.Writer, list []StoredRows) {
	w.Numbers(len(list))
	for _, x := range list {
		w.Numbers(x.Layer, wire.Bit(x.Backward))
		w.Bytes(mapped.Bytes(x.Rows))
		w.Bytes(mapped.Bytes(x.Epochs))
		w.Bytes(mapped.Bytes(x.Sent))
		w.Bytes(mapped.Bytes(x.SentAt))
	}
}

func readStored(r *wire.Reader) (list []StoredRows) {
	for range r.Count() {
		list = append(list, StoredRows{
			Layer: r.Number(), Backward: r.Flag(), Rows: wire.Array[float32](r, -1), Epochs: wire.Array[int32](r, -1),
			Sent: wire.Array[float32](r, -1), SentAt: wire.Array[int32](r, -1),
		})
	}
	return list
}
