package codec

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

const idZeros = 7 // in block headers

var zerosKind = kind{
	entry: entry{Name: "zeros", Help: "numbers other than 0, and a bit for each column"},
	make:  always(zeros{}), class: lossless, auto: []string{""},
}

// zeros omits the zeros of each row, three of four numbers after ReLU and dropout:
//
//	a bit for each column, the first one the lowest, in as many bytes as these fill;
//	the numbers whose bit is set, as they are
//
// Only +0 is omitted. Everything else, -0 included, is restored to the bit.
type zeros struct{}

func (zeros) ID() ID         { return ID{Codec: idZeros} }
func (zeros) Name() string   { return "zeros" }
func (zeros) Lossless() bool { return true }

func (zeros) Size(rows, cols int) (int, bool) { return rows * (4*cols + maskBytes(cols)), false }

// maskBytes returns the bytes of a row's bits.
func maskBytes(cols int) int { return (cols + 7) / 8 }

func (c zeros) Encode(dst []byte, src Rows, _ Key) []byte {
	most, _ := c.Size(src.Len, src.Cols)
	dst = slices.Grow(dst, most)
	for i := range src.Len {
		dst = appendNonZeros(dst, src.Row(i))
	}
	return dst
}

// appendNonZeros appends a row. dst must have capacity for all its numbers: each is written, and a
// zero is overwritten by the next.
func appendNonZeros(dst []byte, row []float32) []byte {
	at := len(dst) + maskBytes(len(row))
	mask, to := dst[len(dst):at], dst[at:at+4*len(row)]
	n := 0
	for k := range mask {
		set := uint32(0)
		for j, v := range row[8*k : min(8*k+8, len(row))] {
			b := math.Float32bits(v)
			binary.LittleEndian.PutUint32(to[n:], b)
			full := (b | -b) >> 31
			set |= full << j
			n += int(4 * full)
		}
		mask[k] = byte(set)
	}
	return dst[:at+n]
}

func (zeros) Decode(dst Rows, payload []byte, add bool) error {
	whole := len(payload)
	for i := range dst.Len {
		n := maskBytes(dst.Cols)
		if len(payload) < n {
			return wrongLength(whole, dst.Len, dst.Cols)
		}
		mask, rest := payload[:n], payload[n:]
		full := 0
		for _, set := range mask {
			full += bits.OnesCount8(set)
		}
		if beyond := 8*n - dst.Cols; len(rest) < 4*full || n > 0 && int(mask[n-1])>>(8-beyond) != 0 {
			return wrongLength(whole, dst.Len, dst.Cols)
		}
		readNonZeros(dst.Row(i), mask, rest, add)
		payload = rest[4*full:]
	}
	if len(payload) > 0 {
		return wrongLength(whole, dst.Len, dst.Cols)
	}
	return nil
}

// readNonZeros sets row to the numbers whose mask bit is set and to zeros, or adds them. It
// adds zeros too, because -0 + 0 is +0.
func readNonZeros(row []float32, mask, from []byte, add bool) {
	for k, set := range mask {
		part := row[8*k : min(8*k+8, len(row))]
		if add {
			for none := ^set << (8 - len(part)) >> (8 - len(part)); none != 0; none &= none - 1 {
				part[bits.TrailingZeros8(none)] += 0
			}
		} else {
			clear(part)
		}
		for ; set != 0; set &= set - 1 {
			j, v := bits.TrailingZeros8(set)&7, math.Float32frombits(binary.LittleEndian.Uint32(from))
			if add {
				v += part[j]
			}
			part[j], from = v, from[4:]
		}
	}
}
