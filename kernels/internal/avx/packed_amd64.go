package avx

import "unsafe"

// packedGathers has the routines for 1 to 8 vectors.
var packedGathers = [...]func(dst *float32, dstStride int, x *float32, stride int, bits *uint64, lines int, cols *uint32,
	base uint32, begin, end *int64,
	rows, seen int, colScale, rowScale *float32, self int, add bool, lanes int){
	nil, gatherPacked512x1, gatherPacked512x2, gatherPacked512x3, gatherPacked512x4,
	gatherPacked512x5, gatherPacked512x6, gatherPacked512x7, gatherPacked512x8,
}

// aheadPacked is the number of edges by which the assembly prefetches a packed row before its use.
const aheadPacked = 32

// MostPacked returns the width of the widest row that Pack accepts, 0 if it accepts none.
func (s Set) MostPacked() int {
	if s == AVX512 {
		return 64 * BitsWords
	}
	return 0
}

// Pack packs the rows of x [len(bits)/BitsWords x width], whose width is at most MostPacked,
// into the rows of dst, which may be x, and returns the number of non-zeros.
func (s Set) Pack(dst []float32, bits []uint64, x []float32, width int) (kept int) {
	if len(bits) == 0 {
		return 0
	}
	full, lanes := s.split(width)
	return packRows512(&dst[0], &bits[0], &x[0], len(bits)/BitsWords, full, lanes)
}

// GatherPacked sums packed rows, with their bits, as Gather does. It prefetches the given number of
// lines of each row.
func (s Set) GatherPacked(dst []float32, r *Rows[float32], bits []uint64, lines, lo, hi int, add bool) {
	if lo == hi {
		return
	}
	self, rowScale := r.ofRow(lo)
	full, lanes := s.split(r.Stride)
	packedGathers[full+1](&dst[lo*r.Stride], 4*r.Stride, unsafe.SliceData(r.X), 4*r.Stride, unsafe.SliceData(bits), lines,
		unsafe.SliceData(r.Cols), r.Base,
		&r.Begin[lo], &r.End[lo], hi-lo, len(r.Cols)-aheadPacked, unsafe.SliceData(r.ColScale), rowScale, self, add, lanes)
}
