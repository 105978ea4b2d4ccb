package avx

import "unsafe"

type gatherFunc func(dst, x *float32, stride int, cols *uint32, base uint32, ahead, rest int, colScale *float32, rowScale float32, self *float32, selfScale float32, add bool, lanes int)

// gathers are the routines for 1 to 8 vectors, by instruction set.
var gathers = [...][9]gatherFunc{
	AVX2:   {nil, gather256x1, gather256x2, gather256x3, gather256x4, gather256x5, gather256x6, gather256x7, gather256x8},
	AVX512: {nil, gather512x1, gather512x2, gather512x3, gather512x4, gather512x5, gather512x6, gather512x7, gather512x8},
}

// lanes is the number of floats in a vector of s.
func (s Set) lanes() int {
	if s == AVX512 {
		return 16
	}
	return 8
}

// ahead is how many edges before its use the assembly prefetches a row.
const ahead = 8

// Gather sets dst to, or adds to it,
//
//	rowScale · Σ_{e in [lo,hi)} ColScale[Cols[e]] · X[Cols[e]-Base]
//
// in the order of the edges. A self of 0 or more is a column id too, whose term
// comes first; -1 is none.
func (s Set) Gather(dst []float32, r *Rows, self, lo, hi int, rowScale float32, add bool) {
	if lo == hi && self < 0 {
		if !add {
			clear(dst)
		}
		return
	}
	lanes := s.lanes()
	cols := unsafe.SliceData(r.Cols[lo:hi])
	scale := unsafe.SliceData(r.ColScale)
	if r.ColScale == nil {
		scale = nil
	}
	selfScale := float32(1)
	if self >= 0 && r.ColScale != nil {
		selfScale = r.ColScale[self]
	}
	// The edges of later rows are looked at too, as far as there are any.
	seeing := min(hi-lo, max(len(r.Cols)-lo-ahead, 0))
	for j := 0; j < len(dst); j += 8 * lanes {
		w := min(8*lanes, len(dst)-j)
		vectors := (w + lanes - 1) / lanes
		var own *float32
		if self >= 0 {
			own = &r.X[(self-int(r.Base))*r.Stride+j]
		}
		gathers[s][vectors](&dst[j], &r.X[j], 4*r.Stride, cols, r.Base, seeing, hi-lo-seeing, scale, rowScale, own, selfScale, add, w-(vectors-1)*lanes)
	}
}
