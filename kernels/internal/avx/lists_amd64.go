package avx

import "unsafe"

// aheadLists is the number of edges by which the assembly prefetches a record before its use.
const aheadLists = 16

// GatherLists is Gather of rows in lists. A record has RecordWords elements of r.X. The first record
// of row i is record i. room [Stride] is a buffer for sums. Edges have no weights.
func (s Set) GatherLists(dst []float32, r *Rows[uint64], room []float32, lo, hi int, add bool) {
	full, lanes := s.split(r.Stride)
	f := gatherLists256
	if s == AVX512 {
		f = gatherLists512
	}
	for row := lo; row < hi; row++ {
		to, scale, self := &dst[row*r.Stride], float32(1), -1
		sums := to
		if add {
			sums = &room[0]
		}
		if r.RowScale != nil {
			scale = r.RowScale[row]
		}
		if r.SelfLoops {
			self = int(r.First) + row
		}
		from, to64 := r.Begin[row], r.End[row]
		seen := max(min(to64, int64(len(r.Cols)-aheadLists))-from, 0)
		f(to, sums, full, lanes, unsafe.SliceData(r.X), unsafe.SliceData(r.Cols[from:]), r.Base, int(seen), int(to64-from-seen),
			unsafe.SliceData(r.ColScale), scale, self, add)
	}
}
