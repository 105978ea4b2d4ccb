package kernels

import (
	"sync"
	"unsafe"

	"siafu/graph"
	"siafu/kernels/internal/avx"
)

// Rows in bfloat16, for gathers that are bound by memory bandwidth.
//
//	dst[r] = bf16(scale[r]·x[r])
//
// Variant: one pass; the scale of a column of a sparse matrix is multiplied in
// before the rounding, so that the gather does not look it up for each edge.

// BF16 is the upper half of a float32, as in the features of a dataset.
type BF16 = graph.BF16

// Narrow returns v rounded to the nearest BF16, ties to even.
func Narrow(v float32) BF16 { return graph.Narrow(v) }

// HalfSlack is the number of elements after the last row of a matrix that
// SpMM reads.
const HalfSlack = avx.HalfSlack

// bitsOf returns x as uint16, for package avx.
func bitsOf(x []BF16) []uint16 {
	return unsafe.Slice((*uint16)(unsafe.SliceData(x)), len(x))
}

// Narrow implements Ops.
func (t *Team) Narrow(dst, x Mat, scale Vector[float32]) {
	mustFit(isSameShape(dst, x) && (scale.Len() == 0 || scale.Len() >= x.Rows))
	narrowRows(t, dst.HostHalf(0), dst.Cols, x, scale.Host())
}

// narrowRows rounds the rows of x, each times its scale, to the columns from 0 on
// of dst, whose rows are stride elements apart; scale nil is 1.
func narrowRows(t *Team, dst []BF16, stride int, x Mat, scale []float32) {
	if x.Cols > 0 {
		do(t, narrowTask{bitsOf(dst), x.Host(), scale, stride, x.Cols, t.set}, x.Rows, rowGrain(x.Cols))
	}
}

type narrowTask struct {
	dst          []uint16
	x, scale     []float32
	stride, cols int
	set          avx.Set
}

func (k *narrowTask) chunk(lo, hi int) {
	for r := lo; r < hi; r++ {
		scale := float32(1)
		if k.scale != nil {
			scale = k.scale[r]
		}
		narrowRow(k.set, k.dst[r*k.stride:][:k.cols], rowOf(k.x, r, k.cols), scale)
	}
}

func narrowRow(set avx.Set, dst []uint16, x []float32, scale float32) {
	done := 0
	if set != avx.None {
		done = set.Narrow(dst, x, scale)
	}
	for j := done; j < len(dst); j++ {
		dst[j] = uint16(Narrow(scale * x[j]))
	}
}

// NarrowRow rounds x to dst, of the same length.
func NarrowRow(dst []BF16, x []float32) {
	if len(dst) != len(x) {
		panic(shortDst)
	}
	narrowRow(avx.Best(), bitsOf(dst), x, 1)
}

// WidenRow sets dst to x, of the same length, or, with add, adds it.
func WidenRow(dst []float32, x []BF16, add bool) {
	if len(dst) != len(x) {
		panic(shortDst)
	}
	widenRow(avx.Best(), dst, bitsOf(x), add)
}

func widenRow(set avx.Set, dst []float32, x []uint16, add bool) {
	done := 0
	if set != avx.None {
		done = set.Widen(dst, x, add)
	}
	for j := done; j < len(dst); j++ {
		v := BF16(x[j]).Float32()
		if add {
			v += dst[j]
		}
		dst[j] = v
	}
}

// wide is scratch memory of one worker for float32 copies of bfloat16 rows.
var widenPool = sync.Pool{New: func() any { return new([]float32) }}

// widenRows copies columns [col, col+cols) of some rows of x, which are stride
// elements apart, without gaps into buffer, and returns them.
func widenRows(set avx.Set, buffer *[]float32, x []uint16, stride, rows, col, cols int) []float32 {
	dst := scratch(buffer, rows*cols)
	for r := range rows {
		widenRow(set, rowOf(dst, r, cols), x[r*stride+col:][:cols], false)
	}
	return dst
}
