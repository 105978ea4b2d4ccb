package avx

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// pairTiles are the tiles of AVX512 for pairs, by number of rows, and one or two vectors.
var pairTiles = [...][3]tileFunc{
	1:  {nil, pairs512x1x1, pairs512x1x2},
	2:  {nil, pairs512x2x1, pairs512x2x2},
	3:  {nil, pairs512x3x1, pairs512x3x2},
	4:  {nil, pairs512x4x1, pairs512x4x2},
	5:  {nil, pairs512x5x1, pairs512x5x2},
	6:  {nil, pairs512x6x1, pairs512x6x2},
	7:  {nil, pairs512x7x1, pairs512x7x2},
	8:  {nil, pairs512x8x1, pairs512x8x2},
	9:  {nil, pairs512x9x1, pairs512x9x2},
	10: {nil, pairs512x10x1, pairs512x10x2},
	11: {nil, pairs512x11x1, pairs512x11x2},
	12: {nil, pairs512x12x1, pairs512x12x2},
}

// pairBlock is the number of elements that pairRows512 converts at a time.
const pairBlock = 32

// HasPairs reports whether this machine has the instructions of PairColumns and of products of pairs.
func (s Set) HasPairs() bool {
	return s == AVX512 && cpu.X86.HasAVX512BF16 && cpu.X86.HasAVX512BW
}

// rowsOfB returns the number of rows of B for k elements of K.
func (p *Product) rowsOfB(k int) int {
	if p.Pairs {
		return (k + 1) / 2
	}
	return k
}

// PairColumns sets dst [(rows+1)/2 x cols] to the pairs of rows of x. An odd last row has zeros beside it. Rows are
// ldd and ldx elements apart.
func (s Set) PairColumns(dst []float32, ldd int, x []float32, ldx, rows, cols int) {
	pairColumns(s, dst, ldd, x, ldx, rows, cols)
}

// pairColumns is PairColumns for elements of either type.
func pairColumns[E float32 | uint16](s Set, dst []float32, ldd int, x []E, ldx, rows, cols int) {
	full, lanes := s.split(cols)
	if rows > 1 {
		pairSomeColumns(&dst[0], 4*ldd, &x[0], ldx, rows/2, full, lanes)
	}
	if rows%2 == 0 {
		return
	}
	var last [2][16]E
	for j := 0; j < cols; j += len(last[0]) {
		w := copy(last[0][:], x[(rows-1)*ldx+j:(rows-1)*ldx+cols])
		pairSomeColumns(&dst[rows/2*ldd+j], 0, &last[0][0], len(last[0]), 1, 0, w)
	}
}

func pairSomeColumns[E float32 | uint16](dst *float32, ldd int, x *E, ldx, pairs, full, lanes int) {
	if at, stride := unsafe.Pointer(x), int(unsafe.Sizeof(*x))*ldx; stride == 2*ldx {
		pairHalfColumns512(dst, ldd, (*uint16)(at), stride, pairs, full, lanes)
	} else {
		pairColumns512(dst, ldd, (*float32)(at), stride, pairs, full, lanes)
	}
}

// pairRows sets Pack to the pairs of h rows of A from i on, and returns the distance of two rows.
func pairRows(p *Product, i, h int) (stride int) {
	full := (p.K - 1) / pairBlock
	if at, lanes := i*p.RowStride, p.K-full*pairBlock; p.Half != nil {
		pairHalfRows512(&p.Pack[0], &p.Half[at], 2*p.RowStride, h, full, lanes)
	} else {
		pairRows512(&p.Pack[0], &p.A[at], 4*p.RowStride, h, full, lanes)
	}
	return (full + 1) * pairBlock / 2
}

// multiplyPairs is multiplyPacked for pairs. It packs all columns of A at once.
func (s Set) multiplyPairs(p *Product) {
	stride := p.M + pairPadding
	if p.Half != nil {
		pairColumns(s, p.Pack, stride, p.Half, p.ColStride, p.K, p.M)
	} else {
		pairColumns(s, p.Pack, stride, p.A, p.ColStride, p.K, p.M)
	}
	next := prefetch{p.stretchOfA(p.K*p.ColStride, p.K*p.M), {p.Next, p.K * p.N}}
	for i := 0; i < p.M; {
		h, f := s.tile(p.M-i, true)
		s.multiplyRows(p, f, i, &p.Pack[i], 4, 4*stride, &next)
		i += h
	}
}

// stretchOfA returns n elements of A from at on, as floats, to prefetch.
func (p *Product) stretchOfA(at, n int) stretch {
	switch {
	case p.Half == nil:
		return stretch{p.A[min(at, len(p.A)-1):], n}
	case at > len(p.Half)-2:
		return stretch{p.B, 0}
	}
	return stretch{unsafe.Slice((*float32)(unsafe.Pointer(&p.Half[at])), (len(p.Half)-at)/2), n / 2}
}

// Round rounds x to bfloat16 in dst, of the same length, and returns the number of elements done. Numbers
// below LeastRounded become 0.
func (s Set) Round(dst, x []float32) (done int) {
	n := len(dst) / s.lanes()
	switch {
	case n == 0:
	case s == AVX512:
		round512(&dst[0], &x[0], n)
	default:
		round256(&dst[0], &x[0], n)
	}
	return n * s.lanes()
}
