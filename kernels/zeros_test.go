package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// Products of operands with many zeros, large enough for the estimate, and of one column have the bits of plain Go.
func TestProductsWithZeros(t *testing.T) {
	plain, team := kernels.NewTeam(2), kernels.NewTeam(2)
	defer plain.Close()
	defer team.Close()
	use(t, plain, "go")
	const rows = 3000
	for _, shape := range [][2]int{{128, 41}, {64, 128}, {200, 48}, {130, 16}, {130, 1}} {
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
					checkBits(t, sum, wantSum)
					product, wantProduct := kerneltest.Values(rows*n, 7), kerneltest.Values(rows*n, 7)
					team.MatMul(kernels.HostMat(rows, n, product), a, w, add)
					plain.MatMul(kernels.HostMat(rows, n, wantProduct), a, w, add)
					checkBits(t, product, wantProduct)
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

func checkBits(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("element %d is %v instead of %v", i, got[i], want[i])
		}
	}
}
