package kernels

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"siafu/kernels/internal/avx"
)

// level3 implements gonum's BLAS interface with this project's dense product: gonum's implementation with
// an Sgemm that gives the same bits with every instruction set. Thus float32 products through blas32 use
// training's routines, and training can use another implementation of the interface. A call uses one
// goroutine: callers divide products among workers.
type level3 struct {
	gonum.Implementation
	set avx.Set
}

// newLevel3 returns the implementation for an instruction set that this machine has; for avx.None it is
// in plain Go.
func newLevel3(set avx.Set) blas.Float32Level3 { return level3{set: set} }

// Sgemm computes c = alpha·op(a)·op(b) + beta·c with c [m x n], op(a) [m x k]
// and op(b) [k x n], row-major. As in BLAS, a NaN or an infinity in one operand
// that meets a zero in the other may or may not reach c; with beta 0, c is not
// read.
//
// An alpha but 1 and a transposed b are rare and cost a copy of b; a
// transposed a is packed piece by piece.
func (l level3) Sgemm(ta, tb blas.Transpose, m, n, k int, alpha float32, a []float32, lda int,
	b []float32, ldb int, beta float32, c []float32, ldc int) {
	checkOperand(ta, m, k, a, lda)
	checkOperand(tb, k, n, b, ldb)
	checkOperand(blas.NoTrans, m, n, c, ldc)
	if m == 0 || n == 0 {
		return
	}
	add := beta != 0
	if add && beta != 1 {
		scaleMatrix(c, m, n, ldc, beta)
	}
	if k == 0 || alpha == 0 {
		if !add {
			scaleMatrix(c, m, n, ldc, 0)
		}
		return
	}
	if tb != blas.NoTrans || alpha != 1 {
		b, ldb = rearranged(tb != blas.NoTrans, b, k, n, ldb, alpha), n
	}
	p := avx.Product{C: c, LDC: ldc, A: a, RowStride: lda, ColStride: 1, B: b, LDB: ldb, M: m, N: n, K: k, Add: add}
	if ta != blas.NoTrans {
		p.RowStride, p.ColStride = 1, lda
	}
	l.multiply(p)
}

func (l level3) multiply(p avx.Product) {
	if l.set == avx.None {
		multiplyPlain(p, false)
		return
	}
	if p.Pack == nil && (p.ColStride != 1 || p.Pairs) {
		pack := packs.Get().(*[avx.PackSize]float32)
		defer packs.Put(pack)
		p.Pack = pack[:]
	}
	l.set.Multiply(p)
}

// packs are scratch memory for transposed operands.
var packs = sync.Pool{New: func() any { return new([avx.PackSize]float32) }}

// checkOperand panics unless op(x) can be [rows x cols].
func checkOperand(t blas.Transpose, rows, cols int, x []float32, ld int) {
	if t != blas.NoTrans {
		rows, cols = cols, rows
	}
	switch {
	case rows < 0 || cols < 0:
		panic("kernels: negative size")
	case ld < max(cols, 1):
		panic("kernels: stride below the number of columns")
	case rows > 0 && len(x) < (rows-1)*ld+cols:
		panic("kernels: short matrix")
	}
}

func scaleMatrix(c []float32, m, n, ldc int, s float32) {
	for i := range m {
		row := c[i*ldc : i*ldc+n]
		for j := range row {
			if s == 0 {
				row[j] = 0
			} else {
				row[j] *= s
			}
		}
	}
}

// rearranged returns alpha·op(b) [k x n] without gaps.
func rearranged(transposed bool, b []float32, k, n, ldb int, alpha float32) []float32 {
	dst := make([]float32, k*n)
	for p := range k {
		for j := range n {
			at := p*ldb + j
			if transposed {
				at = j*ldb + p
			}
			dst[p*n+j] = alpha * b[at]
		}
	}
	return dst
}
