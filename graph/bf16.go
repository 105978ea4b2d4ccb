package graph

import "math"

// BF16 is the upper half of a float32: its range with 8 bits of mantissa.
type BF16 uint16

// Float32 returns the exact value.
func (b BF16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// Narrow returns v rounded to the nearest BF16, ties to even. It is infinite if v is finite but above
// the largest BF16 by more than half a unit.
func Narrow(v float32) BF16 {
	bits := math.Float32bits(v)
	if v != v {
		return 0x7fc0 // rounding could carry a NaN into the sign
	}
	return BF16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Floats returns dense features as float32 [Rows x Dim]: those in bfloat16 are copied.
func (f *Features) Floats() []float32 {
	if f.Half == nil {
		return f.Dense
	}
	x := make([]float32, len(f.Half))
	for i, h := range f.Half {
		x[i] = h.Float32()
	}
	return x
}
