package avx

type (
	sparseRows func(c *float32, ldc int, a *float32, lda int, bits *uint64, words int, b *float32,
		ldb, rows int, add bool, lanes, ahead int)
	sparseColumns func(c *float32, ldc int, a *float32, lda int, bits *uint64, b *float32, ldb, cols int, add bool, lanes int)
	nonzeros      func(bits *uint64, stride int, x *float32, ldx, rows, full, lanes int)
)

// skipping has the routines of an instruction set for 1 to 8 vectors.
var skipping = [...]struct {
	nonzeros nonzeros
	rows     [9]sparseRows
	columns  [9]sparseColumns
}{
	AVX2: {nonzeros256,
		[9]sparseRows{nil, sparseRows256x1, sparseRows256x2, sparseRows256x3, sparseRows256x4,
			sparseRows256x5, sparseRows256x6, sparseRows256x7, sparseRows256x8},
		[9]sparseColumns{nil, sparseColumns256x1, sparseColumns256x2, sparseColumns256x3, sparseColumns256x4,
			sparseColumns256x5, sparseColumns256x6, sparseColumns256x7, sparseColumns256x8}},
	AVX512: {nonzeros512,
		[9]sparseRows{nil, sparseRows512x1, sparseRows512x2, sparseRows512x3, sparseRows512x4,
			sparseRows512x5, sparseRows512x6, sparseRows512x7, sparseRows512x8},
		[9]sparseColumns{nil, sparseColumns512x1, sparseColumns512x2, sparseColumns512x3, sparseColumns512x4,
			sparseColumns512x5, sparseColumns512x6, sparseColumns512x7, sparseColumns512x8}},
}

// wordBits is the number of elements for which a word has a bit.
const wordBits = RowsOfBits

// rowsAtOnce is the number of rows of A whose bits are computed before they are multiplied. They
// must stay in the first-level cache.
const rowsAtOnce = 32

// MultiplySparse computes p like Multiply, but skips the zeros of A. The bits are the same, except
// that a zero times a NaN or an infinity in B is skipped too. A transposed A has at most MostSparse
// columns. Pack is not used.
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

func (s Set) multiplyRowsOf(p *Product, scratch *Scratch) {
	for i := 0; i < p.M; i += rowsAtOnce {
		rows := min(rowsAtOnce, p.M-i)
		a := p.A[i*p.RowStride:]
		words := s.bitsOf(scratch.bits[:], a, p.RowStride, rows, p.K)
		for j := 0; j < p.N; j += 8 * s.lanes() {
			vectors, lanes := s.panel(p.N, j)
			skipping[s].rows[vectors](&p.C[i*p.LDC+j], 4*p.LDC, &a[0], 4*p.RowStride, &scratch.bits[0], words,
				&p.B[j], 4*p.LDB, rows, p.Add, lanes, 4*rowsAtOnce*p.RowStride)
		}
	}
}

// sumColumns computes the sum of a block of K separately and then adds it, as Multiply does.
func (s Set) sumColumns(p *Product, scratch *Scratch) {
	words := s.columnBits(p, scratch)
	for j := 0; j < p.N; j += 8 * s.lanes() {
		vectors, lanes := s.panel(p.N, j)
		c, ldc := p.C[j:], p.LDC
		if p.Add {
			c, ldc = scratch.sums[:], 8*s.lanes()
		}
		for k := 0; k < p.K; k += wordBits {
			for i := 0; i < p.M; i += wordBits {
				bits := &scratch.bits[(k/wordBits*words+i/wordBits)*wordBits]
				skipping[s].columns[vectors](&c[i*ldc], 4*ldc, &p.A[k*p.ColStride+i], 4*p.ColStride, bits,
					&p.B[k*p.LDB+j], 4*p.LDB, min(wordBits, p.M-i), k > 0, lanes)
			}
		}
		if p.Add {
			width := (vectors-1)*s.lanes() + lanes
			for i := range p.M {
				s.AddRow(p.C[i*p.LDC+j:][:width], c[i*ldc:][:width])
			}
		}
	}
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
