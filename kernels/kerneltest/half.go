package kerneltest

import (
	"fmt"
	"testing"

	"siafu/kernels"
	"siafu/kernels/kerneltest/flat"
)

// HalfProducts tests flat.MatMulHalf, MatMulBiasReLUDropoutHalf and MatMulTransAHalf on teams
// that prepare configures. The bits must equal those of products of the widened matrix, which
// are tested separately.
func HalfProducts(t *testing.T, prepare func(*kernels.Team)) {
	for _, s := range [][3]int{{0, 3, 5}, {1, 1, 1}, {13, 7, 5}, {100, 33, 70}, {1500, 5, 19}, {700, 40, 300}} {
		m, n, k := s[0], s[1], s[2]
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			a, b, g, bias := Values(m*k, 1), Values(k*n, 2), Values(m*n, 3), Values(n, 4)
			half := make([]kernels.BF16, m*k)
			for i, v := range a {
				half[i] = kernels.Narrow(v)
				a[i] = half[i].Float32()
			}
			d := &kernels.Dropout{Seed: 3, P: 0.25}
			full := outcome(t, poison(m*n), func(team *kernels.Team, dst []float32) {
				prepare(team)
				flat.MatMulBiasReLUDropout(team, dst, m, n, k, a, b, bias, true, d)
			})
			same(t, outcome(t, poison(m*n), func(team *kernels.Team, dst []float32) {
				prepare(team)
				flat.MatMulBiasReLUDropoutHalf(team, dst, m, n, k, half, b, bias, true, d)
			}), full)
			for _, add := range []bool{false, true} {
				plain := outcome(t, Values(m*n, 6), func(team *kernels.Team, dst []float32) {
					prepare(team)
					flat.MatMul(team, dst, m, n, k, a, b, add)
				})
				same(t, outcome(t, Values(m*n, 6), func(team *kernels.Team, dst []float32) {
					prepare(team)
					flat.MatMulHalf(team, dst, m, n, k, half, b, add)
				}), plain)
				full := outcome(t, Values(k*n, 5), func(team *kernels.Team, dst []float32) {
					prepare(team)
					flat.MatMulTransA(team, dst, k, n, m, a, g, add)
				})
				same(t, outcome(t, Values(k*n, 5), func(team *kernels.Team, dst []float32) {
					prepare(team)
					flat.MatMulTransAHalf(team, dst, k, n, m, half, g, add)
				}), full)
			}
		})
	}
}
