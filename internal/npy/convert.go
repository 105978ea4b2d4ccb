package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

func (e element) order() binary.ByteOrder {
	if e.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

func (e element) float() (func([]byte) float64, error) {
	order := e.order()
	if e.kind == 'f' {
		switch e.bytes {
		case 2:
			return func(b []byte) float64 { return Float16(order.Uint16(b)) }, nil
		case 4:
			return func(b []byte) float64 { return float64(math.Float32frombits(order.Uint32(b))) }, nil
		default:
			return func(b []byte) float64 { return math.Float64frombits(order.Uint64(b)) }, nil
		}
	}
	if e.kind == 'B' { // the upper half of a float32
		return func(b []byte) float64 { return float64(math.Float32frombits(uint32(order.Uint16(b)) << 16)) }, nil
	}
	if e.kind == 'u' && e.bytes == 8 {
		return func(b []byte) float64 { return float64(order.Uint64(b)) }, nil
	}
	integer, err := e.integer()
	if err != nil {
		return nil, err
	}
	return func(b []byte) float64 {
		v, _ := integer(b)
		return float64(v)
	}, nil
}

// integer returns the function that reads one element as an int64. The function returns false if
// the value overflows int64.
func (e element) integer() (func([]byte) (int64, bool), error) {
	order := e.order()
	switch e.kind {
	case 'f', 'B':
		float, err := e.float()
		return func(b []byte) (int64, bool) {
			f := float(b)
			// -2⁶³ is a float64, 2⁶³-1 is not: hence the open upper bound.
			whole := f == math.Trunc(f) && f >= -1<<63 && f < 1<<63
			if !whole {
				return 0, false
			}
			return int64(f), true
		}, err
	case 'b':
		return func(b []byte) (int64, bool) { return int64(b[0]), b[0] <= 1 }, nil
	case 'i', 'u':
		return e.fixed(order), nil
	}
	return nil, fmt.Errorf("type %c holds no numbers", e.kind)
}

// fixed reads integers of e's width.
func (e element) fixed(order binary.ByteOrder) func([]byte) (int64, bool) {
	signed, unused := e.kind == 'i', 64-8*e.bytes
	return func(b []byte) (int64, bool) {
		var v uint64
		switch e.bytes {
		case 1:
			v = uint64(b[0])
		case 2:
			v = uint64(order.Uint16(b))
		case 4:
			v = uint64(order.Uint32(b))
		default:
			v = order.Uint64(b)
		}
		if signed {
			return int64(v<<unused) >> unused, true
		}
		return int64(v), int64(v) >= 0
	}
}

// word reads one element of type U or S.
func (e element) word(b []byte) string {
	if e.kind == 'S' {
		return string(bytes.TrimRight(b, "\x00"))
	}
	order := e.order()
	var s strings.Builder
	zeros := 0 // zeros at the end are padding
	for ; len(b) >= 4; b = b[4:] {
		r := order.Uint32(b)
		if r == 0 {
			zeros++
			continue
		}
		for ; zeros > 0; zeros-- {
			s.WriteByte(0)
		}
		// WriteRune replaces invalid code points; a uint32 beyond int32 becomes negative and is
		// also replaced.
		s.WriteRune(rune(r))
	}
	return s.String()
}
