package avx

import "unsafe"

// gatherFunc sums rows of E, float32 or bfloat16.
type gatherFunc[E float32 | uint16] func(dst *float32, dstStride int, x *E, stride int, cols *uint32, base uint32, begin, end *int64,
	rows, seen int, weights, colScale, rowScale *float32, self int, add bool, lanes int)

// gathers are the routines for 1 to 8 vectors, by instruction set.
var (
	gathers = [...][9]gatherFunc[float32]{
		AVX2:   {nil, gather256x1, gather256x2, gather256x3, gather256x4, gather256x5, gather256x6, gather256x7, gather256x8},
		AVX512: {nil, gather512x1, gather512x2, gather512x3, gather512x4, gather512x5, gather512x6, gather512x7, gather512x8},
	}
	halfGathers = [...][9]gatherFunc[uint16]{
		AVX2: {nil, gatherHalf256x1, gatherHalf256x2, gatherHalf256x3, gatherHalf256x4, gatherHalf256x5, gatherHalf256x6,
			gatherHalf256x7, gatherHalf256x8},
		AVX512: {nil, gatherHalf512x1, gatherHalf512x2, gatherHalf512x3, gatherHalf512x4, gatherHalf512x5, gatherHalf512x6,
			gatherHalf512x7, gatherHalf512x8},
	}
	weightedGathers = [...][9]gatherFunc[float32]{
		AVX2: {nil, gatherWeighted256x1, gatherWeighted256x2, gatherWeighted256x3, gatherWeighted256x4, gatherWeighted256x5,
			gatherWeighted256x6, gatherWeighted256x7, gatherWeighted256x8},
		AVX512: {nil, gatherWeighted512x1, gatherWeighted512x2, gatherWeighted512x3, gatherWeighted512x4, gatherWeighted512x5,
			gatherWeighted512x6, gatherWeighted512x7, gatherWeighted512x8},
	}
	weightedHalfGathers = [...][9]gatherFunc[uint16]{
		AVX2: {nil, gatherHalfWeighted256x1, gatherHalfWeighted256x2, gatherHalfWeighted256x3, gatherHalfWeighted256x4,
			gatherHalfWeighted256x5, gatherHalfWeighted256x6, gatherHalfWeighted256x7, gatherHalfWeighted256x8},
		AVX512: {nil, gatherHalfWeighted512x1, gatherHalfWeighted512x2, gatherHalfWeighted512x3, gatherHalfWeighted512x4,
			gatherHalfWeighted512x5, gatherHalfWeighted512x6, gatherHalfWeighted512x7, gatherHalfWeighted512x8},
	}
)

// lanes returns the number of floats in a vector of s.
func (s Set) lanes() int {
	if s == AVX512 {
		return 16
	}
	return 8
}

// ahead is the number of edges by which the assembly prefetches a row before its use.
const ahead = 16

// Gather sets the rows [lo, hi) of dst [rows x Stride] to, or adds to them,
//
//	RowScale[r] · Σ_{e in [Begin[r],End[r])} Weights[e] · ColScale[Cols[e]] · X[Cols[e]-Base]
//
// in the order of the edges, the self loop first.
func (s Set) Gather(dst []float32, r *Rows[float32], lo, hi int, add bool) {
	f := &gathers[s]
	if r.Weights != nil {
		f = &weightedGathers[s]
	}
	gather(s, f, 4, dst, r, lo, hi, add)
}

// GatherHalf sums bfloat16 rows as Gather does. X has HalfSlack further elements after its rows,
// which are read without effect.
func (s Set) GatherHalf(dst []float32, r *Rows[uint16], lo, hi int, add bool) {
	f := &halfGathers[s]
	if r.Weights != nil {
		f = &weightedHalfGathers[s]
	}
	gather(s, f, 2, dst, r, lo, hi, add)
}

func gather[E float32 | uint16](s Set, f *[9]gatherFunc[E], size int, dst []float32, r *Rows[E], lo, hi int, add bool) {
	if lo == hi {
		return
	}
	if len(r.X) == 0 {
		// No column can be looked up: all rows are empty.
		if !add {
			clear(dst[lo*r.Stride : hi*r.Stride])
		}
		return
	}
	for lo < hi {
		next := hi
		if r.Stride > 8*s.lanes() {
			next = r.together(lo, hi)
		}
		self, rowScale := r.ofRow(lo)
		for j := 0; j < r.Stride; j += 8 * s.lanes() {
			vectors, lanes := s.panel(r.Stride, j)
			f[vectors](&dst[lo*r.Stride+j], 4*r.Stride, &r.X[j], size*r.Stride, unsafe.SliceData(r.Cols), r.Base,
				&r.Begin[lo], &r.End[lo], next-lo, len(r.Cols)-ahead, unsafe.SliceData(r.Weights),
				unsafe.SliceData(r.ColScale), rowScale, self, add, lanes)
		}
		lo = next
	}
}

// together returns the end of the rows from lo on that are computed panel by panel. They have few edges, so
// that the second panel finds the pages of x still known.
func (r *Rows[E]) together(lo, hi int) int {
	end, edges := lo+1, r.End[lo]-r.Begin[lo]
	for end < hi && edges < edgesTogether {
		edges += r.End[end] - r.Begin[end]
		end++
	}
	return end
}

const edgesTogether = 64

// ofRow returns the column of the self loop of a row, -1 without self loops, and its place in
// RowScale.
func (r *Rows[E]) ofRow(row int) (self int, scale *float32) {
	self = -1
	if r.SelfLoops {
		self = int(r.First) + row
	}
	if r.RowScale != nil {
		scale = &r.RowScale[row]
	}
	return self, scale
}

// Narrow sets dst to scale times x in bfloat16, rounded to nearest. It writes whole vectors and
// returns the number of written elements.
func (s Set) Narrow(dst []uint16, x []float32, scale float32) int {
	vectors := len(x) / s.lanes()
	if vectors == 0 {
		return 0
	}
	if s == AVX512 {
		narrow512(&dst[0], &x[0], scale, vectors)
	} else {
		narrow256(&dst[0], &x[0], scale, vectors)
	}
	return vectors * s.lanes()
}

// Widen sets dst to x, which is bfloat16, or, with add, adds x to dst. It processes whole vectors and
// returns the number of their elements.
func (s Set) Widen(dst []float32, x []uint16, add bool) int {
	vectors := len(x) / s.lanes()
	switch {
	case vectors == 0:
	case add && s == AVX512:
		widenAdd512(&dst[0], &x[0], vectors)
	case add:
		widenAdd256(&dst[0], &x[0], vectors)
	case s == AVX512:
		widen512(&dst[0], &x[0], vectors)
	default:
		widen256(&dst[0], &x[0], vectors)
	}
	return vectors * s.lanes()
}
