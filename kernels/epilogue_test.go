package kernels_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"siafu/internal/testkit/kerneltest"
	"siafu/internal/testkit/kerneltest/flat"
	"siafu/kernels"
)

// The epilogue and sums of columns have the bits of their definitions with every instruction set: with several rows in
// a repeated bias and with one, without a bias, with negative zeros and NaNs.
func TestRowPassesBits(t *testing.T) {
	eachSet(t, func(t *testing.T, set string) {
		team := kernels.NewTeam(2)
		defer team.Close()
		use(t, team, set)
		rng := rand.New(rand.NewPCG(5, 6))
		for range 200 {
			rows, cols := 1+rng.IntN(60), 1+rng.IntN(300)
			if rng.IntN(2) == 0 {
				cols = 1 + rng.IntN(40)
			}
			z, bias, got, sums := kerneltest.Values(rows*cols, 1), kerneltest.Values(cols, 2), make([]float32, rows*cols), make([]float32, cols)
			z[rng.IntN(len(z))] = float32(math.Copysign(0, -1))
			z[rng.IntN(len(z))] = float32(math.NaN())
			relu := rng.IntN(3) > 0
			if rng.IntN(3) == 0 {
				bias = nil
			}
			flat.BiasReLUDropout(team, got, rows, cols, z, bias, relu, nil)
			flat.ColumnSums(team, sums, rows, cols, z, false)
			want := make([]float32, cols)
			for i, v := range z {
				want[i%cols] += v
				if bias != nil {
					v += bias[i%cols]
				}
				if relu && bias == nil {
					v = max(v, 0) // 0 for -0
				} else if relu && v < 0 {
					v = 0
				}
				if !identical(float64(got[i]), float64(v)) {
					t.Fatalf("%d x %d, ReLU %v, bias %v: element %d is %v, want %v", rows, cols, relu, bias != nil, i, got[i], v)
				}
			}
			for j := range want {
				if !identical(float64(sums[j]), float64(want[j])) {
					t.Fatalf("%d x %d: the sum of column %d is %v, want %v", rows, cols, j, sums[j], want[j])
				}
			}
		}
	})
}
