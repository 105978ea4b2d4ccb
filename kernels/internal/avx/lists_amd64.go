package avx

import "unsafe"

// aheadLists is the number of edges by which the assembly prefetches a record before its use.
const aheadLists = 16

// GatherLists sums rows in lists as Gather does. A record has RecordWords elements of r.X. The first
// record of row i is record i. buffer [Stride] is for sums. Edges have no weights.
func (s Set) GatherLists(dst []float32, r *Rows[uint64], buffer []float32, lo, hi int, add bool) {
	full, lanes := s.split(r.Stride)
	f := gatherLists256
	if s == AVX512 {
		f = gatherLists512
	}
	for row := lo; row < hi; row++ {
		to, scale := &dst[row*r.Stride], float32(1)
		sums := to
		if add {
			sums = &buffer[0]
		}
		self, rowScale := r.ofRow(row)
		if rowScale != nil {
			scale = *rowScale
		}
		from, to64 := r.Begin[row], r.End[row]
		seen := max(min(to64, int64(len(r.Cols)-aheadLists))-from, 0)
		f(to, sums, full, lanes, unsafe.SliceData(r.X), unsafe.SliceData(r.Cols[from:]), r.Base, int(seen), int(to64-from-seen),
			unsafe.SliceData(r.ColScale), scale, self, add)
	}
}
