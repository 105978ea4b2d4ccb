package kernels

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/gonum"

	"siafu/kernels/internal/avx"
)

var _ blas.Float32 = level3{} // what blas32.Use takes

// Sgemm equals gonum's up to rounding, for any transposes and factors, also inside larger
// matrices. All instruction sets give the same bits.
func TestSgemm(t *testing.T) {
	for set := avx.None; set <= avx.Best(); set++ {
		for _, s := range [][3]int{{0, 3, 2}, {1, 1, 1}, {3, 5, 0}, {13, 33, 7}, {25, 17, 800}, {40, 70, 300}} {
			for _, trans := range [][2]blas.Transpose{{blas.NoTrans, blas.NoTrans}, {blas.NoTrans, blas.Trans},
				{blas.Trans, blas.NoTrans}, {blas.Trans, blas.Trans}} {
				for _, factor := range [][2]float32{{1, 0}, {1, 1}, {-0.5, 2}, {0, 0.5}} {
					t.Run(fmt.Sprint(set, s, trans, factor), func(t *testing.T) {
						compareSgemm(t, level3{set: set}, s[0], s[1], s[2], trans, factor[0], factor[1])
					})
				}
			}
		}
	}
}

func compareSgemm(t *testing.T, l level3, m, n, k int, trans [2]blas.Transpose, alpha, beta float32) {
	a, lda := blasMatrix(trans[0], m, k, 1)
	b, ldb := blasMatrix(trans[1], k, n, 2)
	got, ldc := blasMatrix(blas.NoTrans, m, n, 3)
	want, exact := slices.Clone(got), slices.Clone(got)
	level3{}.Sgemm(trans[0], trans[1], m, n, k, alpha, a, lda, b, ldb, beta, exact, ldc)
	l.Sgemm(trans[0], trans[1], m, n, k, alpha, a, lda, b, ldb, beta, got, ldc)
	gonum.Implementation{}.Sgemm(trans[0], trans[1], m, n, k, alpha, a, lda, b, ldb, beta, want, ldc)
	// k products of numbers below 1, each side rounding each sum once or twice.
	bound := float64(3*k+3) * float64(k+2) / (1 << 24)
	for i := range got {
		if got[i] != exact[i] {
			t.Fatalf("element %d is %v, in plain Go %v", i, got[i], exact[i])
		}
		if d := math.Abs(float64(got[i] - want[i])); !(d <= bound) {
			t.Fatalf("element %d is %v, gonum's %v", i, got[i], want[i])
		}
	}
}

// blasMatrix returns a matrix with op(x) [rows x cols] and three unused columns.
func blasMatrix(t blas.Transpose, rows, cols int, seed uint32) ([]float32, int) {
	if t != blas.NoTrans {
		rows, cols = cols, rows
	}
	ld := cols + 3
	x := make([]float32, rows*ld+1)
	for i := range x {
		seed = seed*1664525 + 1013904223
		x[i] = float32(seed>>8)/(1<<23) - 1
	}
	return x, ld
}

// Through blas32, registered as a program of gonum's would.
func Example_blas32() {
	blas32.Use(newLevel3(avx.Best()).(blas.Float32))
	defer blas32.Use(gonum.Implementation{})
	a := blas32.General{Rows: 2, Cols: 2, Stride: 2, Data: []float32{1, 2, 3, 4}}
	b := blas32.General{Rows: 2, Cols: 2, Stride: 2, Data: []float32{5, 6, 7, 8}}
	c := blas32.General{Rows: 2, Cols: 2, Stride: 2, Data: make([]float32, 4)}
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, a, b, 0, c)
	fmt.Println(c.Data)
	// Output: [19 22 43 50]
}

func TestSgemmPanics(t *testing.T) {
	for name, call := range map[string]func(l level3){
		"short c":       func(l level3) { l.sgemm(2, 2, 2, make([]float32, 3)) },
		"negative size": func(l level3) { l.sgemm(-1, 2, 2, make([]float32, 4)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call(level3{set: avx.Best()})
		})
	}
}

func (l level3) sgemm(m, n, k int, c []float32) {
	x := make([]float32, 100)
	l.Sgemm(blas.NoTrans, blas.NoTrans, m, n, k, 1, x, 10, x, 10, 0, c, 2)
}
