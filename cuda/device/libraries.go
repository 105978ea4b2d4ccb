package device

import "errors"

// ErrLibrary says that a library of products is not there, or is not used.
var ErrLibrary = errors.New("no such library")

// Libraries is a Device that libraries of products may lie beside: NVIDIA's cuBLAS
// and cuSPARSE, or what stands in for them. Where one is absent the error is an
// ErrLibrary. What is opened is closed before the stream is.
type Libraries interface {
	Device
	// BLAS is a library of dense products, whose work is queued on s.
	BLAS(s Stream) (BLAS, error)
	// Sparse is a library of products with a sparse matrix, on s too.
	Sparse(s Stream) (Sparse, error)
}

// BLAS is a library of dense products. Calls of it may be made from any goroutine.
type BLAS interface {
	// Name is its name and version, "cuBLAS 12.4.5".
	Name() string
	// Gemm queues a product. The same one gives the same bits.
	Gemm(g Gemm) error
	// Close ends it once its work is done.
	Close() error
}

// Gemm is a product of float32 matrices as BLAS has it:
//
//	c [m x n] = op(a) [m x k] op(b) [k x n] + beta c
//
// Matrices are column-major: element (i, j) of x is float i + j·ldx from x on. op
// transposes where it is asked to. With a beta of 0 c is not read. m, n and k are 1
// or more.
type Gemm struct {
	TransA, TransB bool
	M, N, K        int
	A, B, C        Ptr
	LDA, LDB, LDC  int
	Beta           float32
}

// Sparse is a library of products with a sparse matrix.
type Sparse interface {
	// Name is its name and version.
	Name() string
	// SpMM prepares c = a b for many calls: descriptors, workspace, and what the
	// algorithm makes of a are kept.
	SpMM(a CSR, b, c Dense, algorithm Algorithm) (SpMM, error)
	// Close ends it. All that it prepared is closed before.
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

// Algorithm is how cuSPARSE multiplies (its documentation, cusparseSpMM). Those with
// numbers are for CSR.
type Algorithm int

// RowMajor is the one for row-major matrices, Deterministic the one with the same bits
// in all runs.
const (
	DefaultAlgorithm Algorithm = iota
	RowMajor                   // CUSPARSE_SPMM_CSR_ALG2
	Deterministic              // CUSPARSE_SPMM_CSR_ALG3
)

// String is its name.
func (a Algorithm) String() string { return [...]string{"default", "ALG2", "ALG3"}[a] }

// SpMM is a product that was prepared.
type SpMM interface {
	// Run queues it.
	Run() error
	// Workspace returns the size of its workspace in bytes.
	Workspace() int
	// Close gives back what it keeps.
	Close() error
}
