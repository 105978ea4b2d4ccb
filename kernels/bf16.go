package kernels

import (
	"math"
	"unsafe"

	"siafu/kernels/internal/avx"
)

// Rows in bfloat16, for gathers that memory holds up.
//
//	dst[r] = bf16(scale[r]·x[r])
//
// Variant: one pass; the scale of a column of a sparse matrix is multiplied in
// before the rounding, so that the gather does not look it up for each edge.

// BF16 is the upper half of a float32: its range with 8 bits of mantissa.
type BF16 uint16

// Float32 is the value, exactly.
func (b BF16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// Narrow is v rounded to the nearest BF16, ties to even.
func Narrow(v float32) BF16 {
	bits := math.Float32bits(v)
	if v != v {
		return 0x7fc0 // rounding could carry a NaN into the sign
	}
	return BF16((bits + 0x7fff + bits>>16&1) >> 16)
}

// HalfSlack is how many elements lie behind the last row of a matrix that
// SpMMHalf reads.
const HalfSlack = avx.HalfSlack

// bitsOf is x as package avx takes it.
func bitsOf(x []BF16) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.SliceData(x)), len(x))
}

// NarrowRows rounds the rows of x [rows x cols], each times its scale, to dst
// (same shape); scale [rows] nil is 1.
func NarrowRows(t *Team, dst []BF16, rows, cols int, x, scale []float32) {
	checkMatrix(x, rows, cols, shortInput)
	if len(dst) < rows*cols {
		panic(shortDst)
	}
	if scale != nil && len(scale) < rows {
		panic(shortVector)
	}
	if cols > 0 {
		do(t, &t.slots.narrow, narrowTask{bitsOf(dst), x, scale, cols, t.set}, rows, rowGrain(cols))
	}
}

type narrowTask struct {
	dst      []uint16
	x, scale []float32
	cols     int
	set      avx.Set
}

func (k *narrowTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		scale := float32(1)
		if k.scale != nil {
			scale = k.scale[r]
		}
		dst, x, done := k.dst[r*k.cols:(r+1)*k.cols], rowOf(k.x, r, k.cols), 0
		if k.set != avx.None {
			done = k.set.Narrow(dst, x, scale)
		}
		for j := done; j < len(dst); j++ {
			dst[j] = uint16(Narrow(scale * x[j]))
		}
	}
}
