package kerneltest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"siafu/graph"
	"siafu/kernels"
)

// SparseMatMul tests kernels.Ops.SparseMatMul.
func (s Suite) SparseMatMul(t *testing.T) {
	eachSparse(t, func(t *testing.T, c sparseCase) {
		w := Values(c.m*c.n, 1)
		for range 2 {
			want := c.products(c.rows, w, func(r, col int) (int, int) { return r, col })
			compareSums(t, s.outcome(t, poison(c.rows*c.n), func(l *fixture, dst []float32) {
				l.SparseMatMul(l.out(c.rows, c.n, dst), l.sparse(c.xs), l.in(c.m, c.n, w), l.drop(c.d))
			}), want)
			insertNonFinite(w)
		}
	})
}

// SparseMatMulTransA tests kernels.Ops.SparseMatMulTransA.
func (s Suite) SparseMatMulTransA(t *testing.T) {
	eachSparse(t, func(t *testing.T, c sparseCase) {
		g := Values(c.rows*c.n, 2)
		for range 2 {
			want := c.products(c.m, g, func(r, col int) (int, int) { return col, r })
			compareSums(t, s.outcome(t, poison(c.m*c.n), func(l *fixture, dst []float32) {
				x := l.sparse(c.xs)
				xt := kernels.NewTransposed(l, l.arena, x, c.m)
				xt.Fill(l, x)
				l.SparseMatMulTransA(l.out(c.m, c.n, dst), xt, l.in(c.rows, c.n, g), l.drop(c.d))
			}), want)
			insertNonFinite(g)
		}
	})
}

// products returns rows of sums. at returns the row of the sum and the row of factors to which an
// element (r, col) belongs.
func (c sparseCase) products(rows int, factors []float32, at func(r, col int) (to, from int)) []sum {
	want := make([]sum, rows*c.n)
	for r := range c.rows {
		for col := range c.m {
			if x := c.dense[r*c.m+col]; x != 0 {
				to, from := at(r, col)
				for j := range c.n {
					want[to*c.n+j].add(float64(x) * float64(factors[from*c.n+j]))
				}
			}
		}
	}
	return want
}

// SparseToDense tests kernels.Ops.SparseToDense.
func (s Suite) SparseToDense(t *testing.T) {
	eachSparse(t, func(t *testing.T, c sparseCase) {
		same(t, s.outcome(t, poison(c.rows*c.m), func(l *fixture, dst []float32) {
			l.SparseToDense(l.out(c.rows, c.m, dst), l.sparse(c.xs), l.drop(c.d))
		}), c.dense)
	})
}

// sparseCase contains X [rows x m] with about 10 % non-zeros, a dropout, and the dense matrix
// after dropout. Offsets do not start at 0, as in a range of rows.
type sparseCase struct {
	rows, m, n int
	xs         graph.SparseRows
	d          *kernels.Dropout
	dense      []float32
}

func eachSparse(t *testing.T, f func(t *testing.T, c sparseCase)) {
	for _, s := range [][3]int{{0, 5, 3}, {4, 0, 3}, {1, 1, 1}, {6, 30, 0}, {6, 30, 7}, {size(700, 90), 190, 17}} {
		for i, d := range dropouts(s[0]) {
			t.Run(fmt.Sprintf("rows=%d/m=%d/n=%d/dropout=%d", s[0], s[1], s[2], i), func(t *testing.T) {
				f(t, newSparseCase(s[0], s[1], s[2], d))
			})
		}
	}
}

func newSparseCase(rows, m, n int, d *kernels.Dropout) sparseCase {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(m)))
	c := sparseCase{rows: rows, m: m, n: n, d: d, dense: make([]float32, rows*m)}
	c.xs = graph.SparseRows{Cols: []uint32{9, 9}, Vals: []float32{9, 9}}
	for r := range rows {
		c.xs.Offsets = append(c.xs.Offsets, int64(len(c.xs.Cols)))
		for col := range m {
			if rng.IntN(10) == 0 && r != rows/2 {
				v := rng.Float32() - 0.5
				c.xs.Cols, c.xs.Vals = append(c.xs.Cols, uint32(col)), append(c.xs.Vals, v)
				c.dense[r*m+col] = drop(d, v, r, col)
			}
		}
	}
	c.xs.Offsets = append(c.xs.Offsets, int64(len(c.xs.Cols)))
	return c
}
