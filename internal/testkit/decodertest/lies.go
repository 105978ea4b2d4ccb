package decodertest

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strconv"
)

// claims lists the false numbers: nearly the largest 31-bit number, one beyond any memory size,
// and one that overflows when it is multiplied by an element size.
var claims = [...]uint64{math.MaxInt32 - 1, 1_000_000_000_000, 1 << 62}

// Lies yields copies of a text. In each copy, one number is replaced by one of several huge
// numbers.
func Lies(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := 0; at < len(text); {
			n := digits(text[at:])
			if n == 0 {
				at++
				continue
			}
			for _, claim := range claims {
				lie := slices.Concat(text[:at], strconv.AppendUint(nil, claim, 10), text[at+n:])
				if !yield(lie) {
					return
				}
			}
			at += n
		}
	}
}

// BinaryLies yields copies of b. In each copy, one aligned word of 4 or 8 bytes is replaced by
// a huge number, little-endian.
func BinaryLies(b []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := 0; at+4 <= len(b); at += 4 {
			short, long := bytes.Clone(b), bytes.Clone(b)
			binary.LittleEndian.PutUint32(short[at:], uint32(claims[0]))
			if !yield(short) {
				return
			}
			if at+8 > len(b) {
				return
			}
			binary.LittleEndian.PutUint64(long[at:], claims[1])
			if !yield(long) {
				return
			}
		}
	}
}

func digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}
