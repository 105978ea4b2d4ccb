package device

import "errors"

// ErrLibrary means that a library of products is absent or not used.
var ErrLibrary = errors.New("no such library")

// Libraries is a Device with optional libraries of products: NVIDIA's cuBLAS and cuSPARSE, or
// stand-ins. If one is absent the error is an ErrLibrary. Libraries must be closed before
// their stream.
type Libraries interface {
	Device
	// BLAS opens a library of dense products, whose work is queued on s.
	BLAS(s Stream) (BLAS, error)
	// Sparse opens a library of products with a sparse matrix, on s too.
	Sparse(s Stream) (Sparse, error)
}

// BLAS is a library of dense products, safe for concurrent use.
type BLAS interface {
	// Name returns its name and version, "cuBLAS 12.4.5".
	Name() string
	// Gemm queues a product. The same product gives the same bits.
	Gemm(g Gemm) error
	// Close ends it once its work is done.
	Close() error
}

// Gemm is a product of float32 matrices, as in BLAS:
//
//	c [m x n] = op(a) [m x k] op(b) [k x n] + beta c
//
// Matrices are column-major: element (i, j) of x is float i + j·ldx from x on. op transposes
// if requested. With beta = 0, c is not read. m, n and k are at least 1.
type Gemm struct {
	TransA, TransB bool
	M, N, K        int
	A, B, C        Ptr
	LDA, LDB, LDC  int
	Beta           float32
}

// Sparse is a library of products with a sparse matrix.
type Sparse interface {
	// Name returns its name and version.
	Name() string
	// SpMM prepares c = a b for many calls: descriptors, workspace, and the algorithm's
	// preprocessing of a.
	SpMM(a CSR, b, c Dense, algorithm Algorithm) (SpMM, error)
	// Close ends it. All prepared products must be closed before.
	Close() error
}

// CSR is a sparse matrix with values. Offsets [Rows+1] and Index [Edges] are of int32,
// Values [Edges] of float32, or of BF16 with Half.
type CSR struct {
	Rows, Cols, Edges      int
	Offsets, Index, Values Ptr
	Half                   bool
}

// Dense is a row-major matrix without gaps, of float32, or of BF16 with Half.
type Dense struct {
	Rows, Cols int
	At         Ptr
	Half       bool
}

// Algorithm is an algorithm of cuSPARSE (its documentation, cusparseSpMM). Numbered ones are
// for CSR.
type Algorithm int

// RowMajor is for row-major matrices, Deterministic gives the same bits in all runs.
const (
	DefaultAlgorithm Algorithm = iota
	RowMajor                   // CUSPARSE_SPMM_CSR_ALG2
	Deterministic              // CUSPARSE_SPMM_CSR_ALG3
)

// String returns its name.
func (a Algorithm) String() string { return [...]string{"default", "ALG2", "ALG3"}[a] }

// SpMM is a prepared product.
type SpMM interface {
	// Run queues it.
	Run() error
	// Workspace returns the size of its workspace in bytes.
	Workspace() int
	// Close frees its resources.
	Close() error
}
