package avx

// Rows are the sparse rows that Gather sums, and what they index: row c-Base
// of X [rows x Stride] for a column id c. ColScale is indexed by c, RowScale by
// row, Weights by edge; nil is 1. With SelfLoops row r has the column First+r too. Of Cols the edges
// behind those that are summed are prefetched by: they must be column ids too,
// of whatever matrix.
type Rows[E float32 | uint16] struct {
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

// LineBytes is a line of the cache, with which a packed row begins.
const LineBytes = 64

// HalfSlack is how many elements of bfloat16 lie behind the last row: what a
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
