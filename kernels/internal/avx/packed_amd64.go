package avx

import "unsafe"

// packedGathers are the routines for 1 to 8 vectors.
var packedGathers = [...]func(dst *float32, dstStride int, x *float32, start *uint32, cols *uint32, base uint32, begin, end *int64,
	rows, seen int, colScale, rowScale *float32, self int, add bool, lanes int){
	nil, gatherPacked512x1, gatherPacked512x2, gatherPacked512x3, gatherPacked512x4,
	gatherPacked512x5, gatherPacked512x6, gatherPacked512x7, gatherPacked512x8,
}

// MostPacked is the widest row that Pack packs, 0 where it packs none.
func (s Set) MostPacked() int {
	if s == AVX512 {
		return 128
	}
	return 0
}

// Pack packs the rows of x [len(start) x width] into the lines [line, end) of dst and sets
// start to the lines where they begin. It returns how many rows found room. Width is at most MostPacked, and dst has a line more than end.
func (s Set) Pack(dst []float32, start []uint32, x []float32, width, line, end int) (rows int) {
	if len(start) == 0 {
		return 0
	}
	full, lanes := s.split(width)
	header := (full + 2) / 2 * 4
	last := end - (header+4*width+LineBytes-1)/LineBytes // where a row without zeros may begin
	return packRows512(&dst[0], &start[0], &x[0], len(start), full, lanes, header, line, last)
}

// GatherPacked is Gather of rows that Pack has packed to the lines x, of r.Stride columns;
// start says where.
func (s Set) GatherPacked(dst []float32, r *Rows[float32], x []float32, start []uint32, lo, hi int, add bool) {
	if lo == hi {
		return
	}
	self := -1
	if r.SelfLoops {
		self = int(r.First) + lo
	}
	var rowScale *float32
	if r.RowScale != nil {
		rowScale = &r.RowScale[lo]
	}
	full, lanes := s.split(r.Stride)
	packedGathers[full+1](&dst[lo*r.Stride], 4*r.Stride, unsafe.SliceData(x), unsafe.SliceData(start), unsafe.SliceData(r.Cols), r.Base,
		&r.Begin[lo], &r.End[lo], hi-lo, len(r.Cols)-ahead, unsafe.SliceData(r.ColScale), rowScale, self, add, lanes)
}
