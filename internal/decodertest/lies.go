package decodertest

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math"
	"slices"
	"strconv"
)

// claims lists the false numbers: about the largest of 31 bits, one beyond any memory, and one
// that overflows a size when multiplied.
var claims = [...]uint64{math.MaxInt32 - 1, 1_000_000_000_000, 1 << 62}

// Lies are copies of a text in which one number after the other is each of
// several huge ones.
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

// BinaryLies are copies of b in which one aligned word after the other is a huge
// number of 4 and one of 8 bytes, little-endian.
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

// digits returns the number of digits at the start of b.
func digits(b []byte) int {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return n
}
