package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"siafu/kernels"
	"siafu/kernels/kerneltest"
)

// Products of operands with many zeros, large enough for the estimate, match plain Go: a sum
// of 3,000 products of numbers below 1 may differ by some roundings of 100.
func TestProductsWithZeros(t *testing.T) {
	plain, team := kernels.NewTeam(2), kernels.NewTeam(2)
	defer plain.Close()
	defer team.Close()
	use(t, plain, "go")
	const rows, most = 3000, 1e-4
	for _, shape := range [][2]int{{128, 41}, {64, 128}, {200, 48}, {130, 16}} {
		m, n := shape[0], shape[1]
		for _, full := range [][2]float64{{0.2, 1}, {1, 0.2}, {0.2, 0.1}} {
			for _, add := range []bool{false, true} {
				t.Run(fmt.Sprintf("%dx%d/full=%v/add=%v", m, n, full, add), func(t *testing.T) {
					a := kernels.HostMat(rows, m, thinned(rows*m, full[0]))
					b := kernels.HostMat(rows, n, thinned(rows*n, full[1]))
					w := kernels.HostMat(m, n, kerneltest.Values(m*n, 3))
					sum, wantSum := kerneltest.Values(m*n, 5), kerneltest.Values(m*n, 5)
					team.MatMulTransA(kernels.HostMat(m, n, sum), a, b, add)
					plain.MatMulTransA(kernels.HostMat(m, n, wantSum), a, b, add)
					within(t, sum, wantSum, most)
					product, wantProduct := kerneltest.Values(rows*n, 7), kerneltest.Values(rows*n, 7)
					team.MatMul(kernels.HostMat(rows, n, product), a, w, add)
					plain.MatMul(kernels.HostMat(rows, n, wantProduct), a, w, add)
					within(t, product, wantProduct, most)
				})
			}
		}
	}
}

// thinned returns values of which the fraction full is not zero.
func thinned(n int, full float64) []float32 {
	x := sparseValues(n, full)
	for i, v := range x {
		if math.IsInf(float64(v), 0) {
			x[i] = 1
		}
	}
	return x
}

func within(t *testing.T, got, want []float32, most float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) < most) {
			t.Fatalf("element %d is %v instead of %v", i, got[i], want[i])
		}
	}
}
