package kernels_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/kernels"
)

// Products with selected rows and their weighted sums match a plain loop in float64, and
// nothing is written after the results. A product has the same bits in either order of its
// rows, and with any other rows selected.
func TestSelectedRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, kernel := range kernels.Variants() {
		team := kernels.NewTeam(1)
		defer team.Close()
		if err := team.Use(kernel); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{0, 1, 3, 8, 15, 16, 17, 32, 50, 128, 200} {
			const rows = 40
			x := make([]float32, rows*width)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			row := func(r uint32) []float32 { return x[int(r)*width : (int(r)+1)*width] }
			for _, n := range []int{0, 1, 4, 7, 65} {
				ids, weights := make([]uint32, n), make([]float32, n)
				for i := range ids {
					ids[i], weights[i] = uint32(rng.IntN(rows)), float32(rng.NormFloat64())
				}
				got, sum := make([]float32, n+1), make([]float32, width+1)
				got[n], sum[width] = 7, 7
				team.DotsOf(got[:n], row(2), x, ids)
				team.AddChosen(sum[:width], x, ids, weights)
				want, size := make([]float64, width), 1.0
				for i, id := range ids {
					dot, other := 0.0, []float32{0}
					for j, v := range row(id) {
						dot += float64(v) * float64(row(2)[j])
						want[j] += float64(v) * float64(weights[i])
						size = max(size, math.Abs(float64(v)*float64(weights[i])))
					}
					team.DotsOf(other, row(id), x, []uint32{2})
					// Sums of up to 200 products of about 1. Each addition has an error of 2^-24 of the partial
					// sum.
					if math.Abs(float64(got[i])-dot) > 1e-4 || other[0] != got[i] {
						t.Fatalf("%s, width %d: product %d of %d is %v, turned round %v, want %v", kernel,
							width, i, n, got[i], other[0], dot)
					}
				}
				if got[n] != 7 || sum[width] != 7 {
					t.Fatalf("%s, width %d, %d rows: written behind the end", kernel, width, n)
				}
				if !slices.EqualFunc(sum[:width], want, func(a float32, b float64) bool { return math.Abs(float64(a)-b) <= 1e-4*size }) {
					t.Fatalf("%s, width %d: the sum of %d rows is %v, want %v", kernel, width, n, sum[:width], want)
				}
			}
		}
	}
}
