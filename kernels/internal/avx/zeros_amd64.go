package avx

import "unsafe"

type (
	sparse func(c *float32, ldc int, a *float32, rowStride, colStride int, bits *uint64, bitStride int, b *float32,
		ldb, rows int, add bool, lanes int)
	nonzeros func(bits *uint64, stride int, x *float32, ldx, rows, full, lanes int)
)

// skipping has the routines of an instruction set for 1 to 9 vectors.
var skipping = [...]struct {
	nonzeros nonzeros
	sparse   [10]sparse
}{
	AVX2: {nonzeros256, [10]sparse{nil, sparse256x1, sparse256x2, sparse256x3, sparse256x4, sparse256x5, sparse256x6,
		sparse256x7, sparse256x8, sparse256x9}},
	AVX512: {nonzeros512, [10]sparse{nil, sparse512x1, sparse512x2, sparse512x3, sparse512x4, sparse512x5, sparse512x6,
		sparse512x7, sparse512x8, sparse512x9}},
}

// wordBits is the number of elements for which a word has a bit.
const wordBits = RowsOfBits

// MultiplySparse computes p like Multiply, but skips the zeros of A. The bits are the same, except
// that a zero times a NaN or an infinity in B is skipped too. A transposed A has at most MostSparse
// columns. Pack is not used.
//
// All rows of A are multiplied with 64 rows of B, which stay in the first-level cache, before the next ones.
func (s Set) MultiplySparse(p Product, scratch *Scratch) { s.multiplyBlocks(p, scratch) }

// bitsOf sets the bits of rows of x; words is the distance of two rows of bits.
func (s Set) bitsOf(bits []uint64, x []float32, stride, rows, cols int) (words int) {
	words = (cols + wordBits - 1) / wordBits
	clear(bits[:rows*words])
	full, lanes := s.split(cols)
	skipping[s].nonzeros(&bits[0], 8*words, &x[0], 4*stride, rows, full, lanes)
	return words
}

// panel returns the next columns of N from j on: the number of vectors, and the lanes of the last.
func (s Set) panel(n, j int) (vectors, lanes int) {
	full, lanes := s.split(min(8*s.lanes(), n-j))
	return full + 1, lanes
}

// multiplyRowsOf computes a few rows at a time.
func (s Set) multiplyRowsOf(p *Product, scratch *Scratch) {
	part := *p
	for i := 0; i < p.M; i += rowsAtOnce {
		part.A, part.C, part.M = p.A[i*p.RowStride:], p.C[i*p.LDC:], min(rowsAtOnce, p.M-i)
		words := s.bitsOf(scratch.bits[:], part.A, p.RowStride, part.M, p.K)
		s.sumSparse(&part, scratch, 1, words)
	}
}

// sumColumns computes all rows from a transposed A.
func (s Set) sumColumns(p *Product, scratch *Scratch) {
	words := s.columnBits(p, scratch)
	s.sumSparse(p, scratch, words*wordBits, 1)
}

// sumSparse computes the sum of a block of K separately and then adds it, as Multiply does. Scratch has the bits: for
// each 64 of K, blockStride words apart, a word for each of M, rowStride words apart.
func (s Set) sumSparse(p *Product, scratch *Scratch, blockStride, rowStride int) {
	for j := 0; j < p.N; {
		vectors, lanes := s.panel(p.N, j)
		if rest := p.N - j - 8*s.lanes(); rest > 0 && rest <= s.lanes() {
			vectors, lanes = 9, rest // a ninth vector alone would wait for each addition
		}
		width := (vectors-1)*s.lanes() + lanes
		c, ldc := p.C[j:], p.LDC
		if p.Add {
			c, ldc = scratch.sums[:], width
		}
		for k := 0; k < p.K; k += wordBits {
			b, ldb := s.rowsOfBlock(p, scratch, k, j, width)
			for i := 0; i < p.M; i += wordBits {
				skipping[s].sparse[vectors](&c[i*ldc], 4*ldc, &p.A[i*p.RowStride+k*p.ColStride], 4*p.RowStride, 4*p.ColStride,
					&scratch.bits[k/wordBits*blockStride+i*rowStride], 8*rowStride, b, 4*ldb, min(wordBits, p.M-i), k > 0, lanes)
			}
		}
		if p.Add {
			for i := range p.M {
				s.AddRow(p.C[i*p.LDC+j:][:width], c[i*ldc:][:width])
			}
		}
		j += width
	}
}

// rowsOfBlock returns 64 rows of columns of B, from row k and column j on. A copy aligns their vectors and moves them
// to the first-level cache, in order: rows of A read them in any order. It does not pay off for aligned vectors, or few rows.
func (s Set) rowsOfBlock(p *Product, scratch *Scratch, k, j, width int) (b *float32, ldb int) {
	from := &p.B[k*p.LDB+j]
	if p.M < wordBits/4 || p.LDB%s.lanes() == 0 && uintptr(unsafe.Pointer(from))%uintptr(4*s.lanes()) == 0 {
		return from, p.LDB
	}
	ldb = (width + s.lanes() - 1) / s.lanes() * s.lanes()
	for r := range min(wordBits, p.K-k) {
		copy(scratch.b[r*ldb:], p.B[(k+r)*p.LDB+j:][:width])
	}
	return &scratch.b[0], ldb
}

// columnBits sets the bits of at most 256 rows of A, in their order in memory: blocks of 64 rows and
// 64 columns, with a word for each column.
func (s Set) columnBits(p *Product, scratch *Scratch) (words int) {
	for k := 0; k < p.K; k += wordBits {
		rows := min(wordBits, p.K-k)
		words = s.bitsOf(scratch.rows[:], p.A[k*p.ColStride:], p.ColStride, rows, p.M)
		for w := range words {
			square := (*[wordBits]uint64)(scratch.bits[(k/wordBits*words+w)*wordBits:])
			for r := range rows {
				square[r] = scratch.rows[r*words+w]
			}
			clear(square[rows:])
			transposeBits(square)
		}
	}
	return words
}

// transposeBits swaps halves of ever smaller squares (Warren, Hacker's Delight, §7-3).
func transposeBits(a *[wordBits]uint64) {
	for j, mask := 32, uint64(1<<32-1); j > 0; j, mask = j/2, mask^mask<<(j/2) {
		for k := 0; k < wordBits; k = (k + j + 1) &^ j {
			t := (a[k]>>j ^ a[k+j]) & mask
			a[k] ^= t << j
			a[k+j] ^= t
		}
	}
}
