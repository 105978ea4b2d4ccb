package halo

import (
	"encoding/binary"
	"fmt"

	"siafu/internal/mapped"
)

// Encoded state, on disk and between processes, has numbers of 8 bytes, little-endian, and
// arrays with their length in bytes before them. It has the lists CodecErrors, StoredRows,
// Pending and, unless it is empty, OwnRows, each with its length before it.

// Encode appends the encoded state to dst.
func (l *SourceState) Encode(dst []byte) []byte {
	p := packer(dst)
	p.numbers(len(l.CodecErrors))
	for _, x := range l.CodecErrors {
		p.numbers(x.Layer, x.Cols, flag(x.Backward))
		p.array(mapped.Bytes(x.Rows))
	}
	p.stored(l.StoredRows)
	p.numbers(len(l.Pending))
	for _, x := range l.Pending {
		p.numbers(x.Layer, x.Part, x.Epoch, x.Cols, flag(x.Backward), len(x.Blocks))
		for _, b := range x.Blocks {
			p.numbers(b.From)
			p.array(b.Data)
		}
	}
	if len(l.OwnRows) > 0 {
		p.stored(l.OwnRows)
	}
	return p
}

// DecodeSourceState decodes the output of Encode. It never trusts the bytes: it returns an
// error for invalid input.
func DecodeSourceState(b []byte) (l SourceState, err error) {
	u := unpacker{rest: b}
	for range u.count() {
		l.CodecErrors = append(l.CodecErrors, CodecError{Layer: u.number(), Cols: u.number(), Backward: u.number() > 0, Rows: arrayOf[float32](&u)})
	}
	l.StoredRows = u.stored()
	for range u.count() {
		h := PendingRows{Layer: u.number(), Part: u.number(), Epoch: u.number(), Cols: u.number(), Backward: u.number() > 0}
		for range u.count() {
			h.Blocks = append(h.Blocks, RankBlock{From: u.number(), Data: arrayOf[byte](&u)})
		}
		l.Pending = append(l.Pending, h)
	}
	if len(u.rest) > 0 {
		l.OwnRows = u.stored()
	}
	if u.failed || len(u.rest) > 0 {
		return SourceState{}, fmt.Errorf("halo: invalid partition state (%d bytes)", len(b))
	}
	return l, nil
}

type packer []byte

func (p *packer) numbers(list ...int) {
	for _, n := range list {
		*p = binary.LittleEndian.AppendUint64(*p, uint64(n))
	}
}

func (p *packer) array(b []byte) {
	p.numbers(len(b))
	*p = append(*p, b...)
}

func (p *packer) stored(list []StoredRows) {
	p.numbers(len(list))
	for _, x := range list {
		p.numbers(x.Layer, flag(x.Backward))
		p.array(mapped.Bytes(x.Rows))
		p.array(mapped.Bytes(x.Epochs))
		p.array(mapped.Bytes(x.Sent))
		p.array(mapped.Bytes(x.SentAt))
	}
}

func flag(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// unpacker is a cursor. After a failure it reads zeros.
type unpacker struct {
	rest   []byte
	failed bool
}

func (u *unpacker) take(n int) []byte {
	if u.failed || n < 0 || n > len(u.rest) {
		u.failed = true
		return nil
	}
	b := u.rest[:n]
	u.rest = u.rest[n:]
	return b
}

func (u *unpacker) number() int {
	if b := u.take(8); b != nil {
		return int(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// count reads the length of a list whose elements have at least 8 bytes.
func (u *unpacker) count() int {
	n := u.number()
	if n < 0 || n > len(u.rest)/8 {
		u.failed = true
		return 0
	}
	return n
}

func (u *unpacker) stored() (list []StoredRows) {
	for range u.count() {
		list = append(list, StoredRows{
			Layer: u.number(), Backward: u.number() > 0, Rows: arrayOf[float32](u), Epochs: arrayOf[int32](u),
			Sent: arrayOf[float32](u), SentAt: arrayOf[int32](u),
		})
	}
	return list
}

func arrayOf[T mapped.Elem](u *unpacker) []T {
	b, one := u.take(u.number()), [1]T{}
	list := make([]T, len(b)/len(mapped.Bytes(one[:])))
	copy(mapped.Bytes(list), b)
	return list
}
