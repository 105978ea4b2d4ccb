package kernels_test

import (
	"fmt"
	"slices"
	"testing"

	"siafu/internal/testkit/kerneltest"
	"siafu/kernels"
)

// Hᵀ G with few columns is computed as the transpose of Gᵀ H, except when adding. The bits are
// the same with any instructions and workers, because adding 0 does not change a sum.
func TestNarrowProducts(t *testing.T) {
	const rows = 3000
	for _, shape := range [][2]int{{128, 41}, {128, 7}, {64, 16}, {13, 3}, {602, 40}, {41, 128}, {9, 1}} {
		m, n := shape[0], shape[1]
		a, b := kernels.HostMat(rows, m, kerneltest.Values(rows*m, 1)), kernels.HostMat(rows, n, kerneltest.Values(rows*n, 2))
		var first []float32
		for _, variant := range kernels.Variants() {
			if variant == "go" || variant == "openblas" {
				continue // gonum's, which has a different order
			}
			for _, workers := range []int{1, 3} {
				t.Run(fmt.Sprintf("%dx%d/%s/%d", m, n, variant, workers), func(t *testing.T) {
					team := kernels.NewTeam(workers)
					defer team.Close()
					use(t, team, variant)
					got, sum := kerneltest.Values(m*n, 3), make([]float32, m*n)
					team.MatMulTransA(kernels.HostMat(m, n, got), a, b, false)
					team.MatMulTransA(kernels.HostMat(m, n, sum), a, b, true)
					if first == nil {
						first = sum
					}
					if !slices.Equal(got, first) || !slices.Equal(sum, first) {
						t.Error("the bits differ")
					}
				})
			}
		}
	}
}
