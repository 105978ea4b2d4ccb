package avx

// Rows are the sparse rows that Gather sums, and what they index: row c-Base
// of X [rows x Stride] for a column id c. ColScale is indexed by c, RowScale by
// row, Weights by edge; nil is 1. With SelfLoops row r has the column First+r too. Of Cols the edges
// after those that are summed are prefetched by: they must be column ids too,
// of whatever matrix.
type Rows[E float32 | uint16 | uint64] struct {
	Begin, End         []int64
	Cols               []uint32
	Weights            []float32
	Base               uint32
	RowScale, ColScale []float32
	SelfLoops          bool
	First              uint32
	X                  []E
	Stride             int
}

// LineBytes is a line of the cache.
const LineBytes = 64

// RecordWords is how many words a record of a list has: the bits of four values, their four
// columns of 16 bits, and the number of the next record, 0 for none.
const RecordWords = 4

// BitsWords is how many words have the bits of a packed row.
const BitsWords = 2

// HalfSlack is how many elements of bfloat16 lie after the last row: what a
// vector reads past it.
const HalfSlack = 16

// Product is C[M x N] (+)= A B, with strides in elements: element (i, p) of A
// is A[i*RowStride+p*ColStride], rows of B and C are LDB and LDC apart. Where
// ColStride is not 1, RowStride must be, and Pack have PackSize elements.
type Product struct {
	C                    []float32
	LDC                  int
	A                    []float32
	RowStride, ColStride int
	B                    []float32
	LDB                  int
	M, N, K              int
	Add                  bool
	Pack                 []float32 // scratch
}

// What MultiplySparse takes at a time: MostSparse columns are all that a transposed A may
// have, and are met by RowsOfBits rows of B and MostSummed columns of it at most.
const (
	MostSparse = 192
	RowsOfBits = 64
	MostSummed = 128
)

// Scratch is what MultiplySparse needs: bits of some rows of A, those of a block by
// column, and the sums of a block.
type Scratch struct {
	rows [RowsOfBits * MostSparse / 64]uint64
	bits [256 * MostSparse / 64]uint64
	sums [MostSparse * MostSummed]float32
}
