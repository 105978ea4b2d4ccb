package predict

import (
	"math"
	"slices"

	"siafu/internal/mapped"
)

// Rows in units are integers: numbers divided by a power of two and rounded. Groups of three bits follow,
// lowest first, in half a byte each; the fourth bit reports that more follow. Halves of bytes are in order, the low one
// first. The first one is 1 if numbers have signs, which then move to the lowest bit: rows after ReLU have
// none. Rows without a unit are float32.
//
// Design note: differences of neighbouring columns, as in the codec polyline, need a bit more for each
// number, because columns are independent. Differences from the rows of another epoch need up to two
// bits less, but then a fit decodes all rows in between.
const (
	firstUnit = -14   // exponent without rows before
	mostUnit  = 20    // largest exponent
	leastUnit = -40   // smallest exponent
	noUnit    = -1000 // rows are float32

	groupBits = 3
	more      = 1 << groupBits
)

// largestUnits bounds the integers.
const largestUnits = 1 << 40

// chooseUnit returns the exponent of the largest unit whose squared rounding errors have a sum of at most
// bound, noUnit if there is none.
func chooseUnit(rows []float32, bound float64) int {
	for e := mostUnit; e >= leastUnit; e-- {
		if unitError(rows, math.Ldexp(1, e), bound) <= bound {
			return e
		}
	}
	return noUnit
}

// unitError returns the sum of the squared rounding errors, or a part of it that is above bound. It is
// NaN if a number is not finite.
func unitError(rows []float32, unit, bound float64) (sum float64) {
	for _, x := range rows {
		v := float64(x)
		d := v - float64(math.RoundToEven(v/unit)*unit)
		if sum += float64(d * d); !(sum <= bound) {
			return sum
		}
	}
	return sum
}

// encodeUnits appends rows in units of 2 to the power of an exponent.
func encodeUnits(dst []byte, rows []float32, exponent int) []byte {
	unit, start := math.Ldexp(1, -exponent), len(dst)
	half := false
	put := func(group byte) {
		if half {
			dst[len(dst)-1] |= group << 4
		} else {
			dst = append(dst, group)
		}
		half = !half
	}
	signed := slices.ContainsFunc(rows, func(x float32) bool { return math.Signbit(float64(x)) })
	if put(0); signed {
		dst[start] = 1
	}
	for _, x := range rows {
		v := math.RoundToEven(float64(x) * unit)
		if exponent == noUnit || !(math.Abs(v) < largestUnits) || len(dst)-start > 4*len(rows) {
			return raw(dst[:start], rows)
		}
		z := uint64(v)
		if signed {
			z = uint64(int64(v)<<1 ^ int64(v)>>63)
		}
		for ; z >= more; z >>= groupBits {
			put(byte(z&(more-1) | more))
		}
		put(byte(z))
	}
	if len(dst)-start > 4*len(rows) {
		return raw(dst[:start], rows)
	}
	return dst
}

// raw appends rows without a unit: their size tells them from others.
func raw(dst []byte, rows []float32) []byte {
	return append(append(dst, mapped.Bytes(rows)...), 0)
}

// decodeUnits decodes what encodeUnits has encoded.
func decodeUnits(rows []float32, src []byte, exponent int) {
	if len(src) == 4*len(rows)+1 {
		copy(mapped.Bytes(rows), src)
		return
	}
	unit, at, signed := math.Ldexp(1, exponent), 1, src[0]&1 != 0
	for i := range rows {
		z, shift := uint64(0), 0
		for {
			group := src[at/2] >> (4 * (at % 2)) & 15
			at++
			z |= uint64(group&(more-1)) << shift
			if shift += groupBits; group < more {
				break
			}
		}
		v := int64(z)
		if signed {
			v = int64(z>>1) ^ -int64(z&1)
		}
		rows[i] = float32(float64(v) * unit)
	}
}
