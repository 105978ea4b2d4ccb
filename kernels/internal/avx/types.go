package avx

// Rows are the sparse rows that Gather sums. Column id c refers to row c-Base of X [rows x Stride].
// ColScale is indexed by c, RowScale by row and Weights by edge; nil means 1. With SelfLoops row r
// also has column First+r. Elements of Cols after the summed edges are read for prefetching, so they
// must be column ids of some matrix.
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

// LineBytes is the size of a cache line.
const LineBytes = 64

// RecordWords is the number of words of a record of a list: the bits of four values, their four
// columns of 16 bits, and the number of the next record, 0 for none.
const RecordWords = 4

// BitsWords is the number of words for the bits of a packed row.
const BitsWords = 2

// HalfSlack is the number of bfloat16 elements after the last row that a vector may read.
const HalfSlack = 16

// ChooseSlack is the number of ids after the copied ones that ChooseAt may overwrite, and of bytes after the bits that it
// may read.
const ChooseSlack = 16

// CodedGroup is the number of gaps of a group of coded columns. Decoders write as many columns
// after the decoded ones, and read CodedSlack bytes after the code.
const (
	CodedGroup = 8
	CodedSlack = 64
)

// Product is C[M x N] (+)= A B, with strides in elements: element (i, p) of A
// is A[i*RowStride+p*ColStride], and rows of B and C are LDB and LDC apart. If
// ColStride is not 1, RowStride must be 1 and Pack must have PackSize elements.
//
// With Pairs, A and B are rounded to bfloat16: B has the pairs of its rows (PairColumns), and Multiply rounds A.
// Pack must have PackSize elements or, if ColStride is not 1, PairsSize(M), and K must be at most 256.
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
	Pairs                bool
	Half                 []uint16  // with Pairs: A, if it is bfloat16
	Next                 []float32 // what the next product reads; prefetched with Pairs
}

// PairsSize returns the length of Pack for pairs and a transposed A with m columns.
func PairsSize(m int) int { return 256 / 2 * (m + pairPadding) }

// pairPadding is the number of elements between packed rows, so that they do not share sets of the cache.
const pairPadding = 16

// Block sizes of MultiplySparse: at most MostSparse columns of a transposed A, RowsOfBits rows of B and MostSummed
// columns of B.
const (
	MostSparse = 192
	RowsOfBits = 64
	MostSummed = 144
)

// rowsAtOnce is the number of rows of A whose bits are computed before the rows are multiplied. They must stay in the
// second-level cache.
const rowsAtOnce = 96

// Scratch is the scratch memory of MultiplySparse: a block of B, in aligned rows, bits of some rows of A, the bits of a
// block of A, and the sums of a block.
type Scratch struct {
	b    [RowsOfBits * MostSummed]float32
	rows [RowsOfBits * MostSparse / 64]uint64
	bits [rowsAtOnce * 768 / 64]uint64 // 768: a block of K of Multiply
	sums [MostSparse * MostSummed]float32
}

// SoftmaxRows is the number of rows of a Softmax, whole pairs of rows that are computed together.
const SoftmaxRows = 64

// Softmax has the numbers of Count rows of a matrix, and the results for them. Later elements are overwritten, too.
type Softmax struct {
	Count int
	Rows  [SoftmaxRows]uint32
	Tops  [SoftmaxRows]float64 // largest elements, except NaNs
	Logs  [SoftmaxRows]float64 // log Σ e^(z-top)
}
