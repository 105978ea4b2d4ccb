package avx

import "unsafe"

// maximaFunc raises a row to the rows of its sources. maximaGradFunc adds gradients from a source.
type (
	maximaFunc     func(dst *float32, arg *uint32, x *float32, stride int, cols, ids *uint32, base uint32, n, seen, lanes int)
	maximaGradFunc func(dst *float32, arg *uint32, grad *float32, stride int, cols *uint32, source uint32, n, seen, lanes int)
)

// Routines for N vectors, by instruction set: for maxima, for maxima with their sources, and for
// gradients.
var (
	maxima = [...][]maximaFunc{AVX2: {nil, maxima256x1, maxima256x2},
		AVX512: {nil, maxima512x1, maxima512x2, maxima512x3, maxima512x4}}
	maximaOf = [...][]maximaFunc{AVX2: {nil, maximaOf256x1, maximaOf256x2},
		AVX512: {nil, maximaOf512x1, maximaOf512x2, maximaOf512x3, maximaOf512x4}}
	maximaGrads = [...][]maximaGradFunc{AVX2: {nil, maximaGrad256x1, maximaGrad256x2},
		AVX512: {nil, maximaGrad512x1, maximaGrad512x2, maximaGrad512x3, maximaGrad512x4}}
)

// Maxima sets dst to the element-wise maximum of dst and the rows c-base of x, of the same
// width, for each of the first n ids c of cols. Unless arg is nil, it records the source c of
// each element; with ties, the c with the lowest of ids. cols is longer, for prefetching.
// Elements that are -Inf have no source.
func (s Set) Maxima(dst []float32, arg []uint32, x []float32, cols, ids []uint32, base uint32, n int) {
	f := maxima[s]
	if arg != nil {
		f = maximaOf[s]
	}
	overVectors(s.lanes(), len(f)-1, len(dst), func(j, vectors, last int) {
		f[vectors](&dst[j], optional(arg, j), &x[j], 4*len(dst), &cols[0], unsafe.SliceData(ids), base, n, len(cols)-ahead, last)
	})
}

// MaximaGrad adds to dst, for each of the first n rows v of cols, the elements of row v of g whose
// element of arg is source.
func (s Set) MaximaGrad(dst []float32, arg []uint32, g []float32, cols []uint32, source uint32, n int) {
	f := maximaGrads[s]
	overVectors(s.lanes(), len(f)-1, len(dst), func(j, vectors, last int) {
		f[vectors](&dst[j], &arg[j], &g[j], 4*len(dst), &cols[0], source, n, len(cols)-ahead, last)
	})
}

// overVectors calls do for blocks of columns from j on, with the number of vectors and the lanes of the last one.
func overVectors(lanes, most, width int, do func(j, vectors, last int)) {
	for j := 0; j < width; j += most * lanes {
		w := min(most*lanes, width-j)
		vectors := (w + lanes - 1) / lanes
		do(j, vectors, w-(vectors-1)*lanes)
	}
}
