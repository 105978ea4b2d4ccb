package kerneltest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"siafu/graph"
	"siafu/internal/mapped"
	"siafu/kernels"
	"siafu/kernels/kerneltest/flat"
)

// SparseMatMul runs an implementation of flat.SparseMatMul.
func SparseMatMul(t *testing.T, mul func(team *kernels.Team, dst []float32, n int, xs graph.SparseRows, w []float32, d *kernels.Dropout)) {
	eachSparse(t, func(t *testing.T, c sparseCase) {
		w := Values(c.m*c.n, 1)
		for range 2 {
			want := make([]sum, c.rows*c.n)
			for r := range c.rows {
				for col := range c.m {
					if x := c.dense[r*c.m+col]; x != 0 {
						for j := range c.n {
							want[r*c.n+j].add(float64(x) * float64(w[col*c.n+j]))
						}
					}
				}
			}
			compareSums(t, outcome(t, poison(c.rows*c.n), func(team *kernels.Team, dst []float32) {
				mul(team, dst, c.n, c.xs, w, c.d)
			}), want)
			spoil(w)
		}
	})
}

// SparseMatMulTransA runs an implementation of flat.SparseMatMulTransA.
func SparseMatMulTransA(t *testing.T, mul func(team *kernels.Team, dst []float32, n int, xt *kernels.Transposed, g []float32, d *kernels.Dropout)) {
	sparseTransA(t, func(team *kernels.Team, dst []float32, c sparseCase, g []float32) {
		arena := mapped.NewArena()
		defer arena.Free()
		mul(team, dst, c.n, flat.TransposeSparse(c.xs, c.m, arena), g, c.d)
	})
}

// sparseTransA runs all cases of an implementation, which makes the transpose itself.
func sparseTransA(t *testing.T, mul func(team *kernels.Team, dst []float32, c sparseCase, g []float32)) {
	eachSparse(t, func(t *testing.T, c sparseCase) {
		g := Values(c.rows*c.n, 2)
		for range 2 {
			want := make([]sum, c.m*c.n)
			for r := range c.rows {
				for col := range c.m {
					if x := c.dense[r*c.m+col]; x != 0 {
						for j := range c.n {
							want[col*c.n+j].add(float64(x) * float64(g[r*c.n+j]))
						}
					}
				}
			}
			compareSums(t, outcome(t, poison(c.m*c.n), func(team *kernels.Team, dst []float32) {
				mul(team, dst, c, g)
			}), want)
			spoil(g)
		}
	})
}

// SparseToDense runs an implementation of flat.SparseToDense.
func SparseToDense(t *testing.T, spread func(team *kernels.Team, dst []float32, cols int, xs graph.SparseRows, d *kernels.Dropout)) {
	eachSparse(t, func(t *testing.T, c sparseCase) {
		same(t, outcome(t, poison(c.rows*c.m), func(team *kernels.Team, dst []float32) {
			spread(team, dst, c.m, c.xs, c.d)
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
