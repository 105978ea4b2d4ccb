package kerneltest

import (
	"fmt"
	"testing"

	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
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
			equal := func(start []float32, narrow, wide func(team *kernels.Team, dst []float32)) {
				prepared := func(run func(team *kernels.Team, dst []float32)) []float32 {
					return outcome(t, start, func(team *kernels.Team, dst []float32) {
						prepare(team)
						run(team, dst)
					})
				}
				same(t, prepared(narrow), prepared(wide))
			}
			equal(poison(m*n), func(team *kernels.Team, dst []float32) {
				flat.MatMulBiasReLUDropoutHalf(team, dst, m, n, k, half, b, bias, true, d)
			}, func(team *kernels.Team, dst []float32) {
				flat.MatMulBiasReLUDropout(team, dst, m, n, k, a, b, bias, true, d)
			})
			for _, add := range []bool{false, true} {
				equal(Values(m*n, 6), func(team *kernels.Team, dst []float32) {
					flat.MatMulHalf(team, dst, m, n, k, half, b, add)
				}, func(team *kernels.Team, dst []float32) {
					flat.MatMul(team, dst, m, n, k, a, b, add)
				})
				equal(Values(k*n, 5), func(team *kernels.Team, dst []float32) {
					flat.MatMulTransAHalf(team, dst, k, n, m, half, g, add)
				}, func(team *kernels.Team, dst []float32) {
					flat.MatMulTransA(team, dst, k, n, m, a, g, add)
				})
			}
		})
	}
}
