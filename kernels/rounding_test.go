package kernels

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"

	"siafu/kernels/internal/avx"
)

// roundingTeam is a Team with rounded operands: by the instructions for bfloat16 or, as on a processor
// without them, by a float32 product.
func roundingTeam(t *testing.T, kernel string, emulates bool, workers int) *Team {
	team := NewTeam(workers)
	t.Cleanup(team.Close)
	if err := team.Use(kernel); err != nil {
		t.Fatal(err)
	}
	team.RoundOperands(true)
	team.emulates = emulates
	return team
}

// wideNumbers returns numbers of which a part is zero, tiny, denormal or cancels others.
func wideNumbers(r *rand.Rand, n int, zeros float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		switch c := r.Intn(24); {
		case r.Float64() < zeros:
		case c == 0:
			x[i] = float32(math.Copysign(0, -1))
		case c == 1:
			x[i] = math.Float32frombits(r.Uint32() & 0x807fffff) // denormal
		case c == 2:
			x[i] = float32(math.Ldexp(r.NormFloat64(), -56+r.Intn(3)-1))
		case c == 3 && i > 0:
			x[i] = -x[i-1]
		case c < 10:
			x[i] = float32(math.Ldexp(r.NormFloat64(), r.Intn(80)-50))
		default:
			x[i] = float32(r.NormFloat64())
		}
	}
	return x
}

// products runs each dense product on the matrices of a case.
func products(team *Team, m, k, n int, a, b, c, start []float32, half bool) map[string][]float32 {
	left := HostMat(m, k, a)
	if half {
		rounded := make([]BF16, len(a)+HalfSlack)
		NarrowRow(rounded[:len(a)], a)
		left = HostHalf(m, k, rounded)
	}
	results := map[string][]float32{}
	run := func(name string, rows, cols int, f func(dst Mat)) {
		dst := slices.Clone(start[:rows*cols])
		f(HostMat(rows, cols, dst))
		results[name] = dst
	}
	for _, add := range []bool{false, true} {
		run(fmt.Sprint("MatMul ", add), m, n, func(dst Mat) { team.MatMul(dst, left, HostMat(k, n, b), add) })
		run(fmt.Sprint("MatMulTransA ", add), k, n, func(dst Mat) { team.MatMulTransA(dst, left, HostMat(m, n, c), add) })
		run(fmt.Sprint("MatMulTransB ", add), m, k, func(dst Mat) { team.MatMulTransB(dst, HostMat(m, n, c), HostMat(k, n, b), add) })
	}
	run("MatMulBiasReLUDropout", m, n, func(dst Mat) {
		team.MatMulBiasReLUDropout(dst, left, HostMat(k, n, b), HostMat(1, n, c[:n]), true, nil)
	})
	run("GradThrough", m, k, func(dst Mat) {
		team.GradThrough(dst, HostMat(m, n, c), HostMat(k, n, b), HostMat(m, n, start[:m*n]), HostMat(k, n, b), nil)
	})
	return results
}

var roundedShapes = [][3]int{{1, 1, 1}, {1, 5, 3}, {2, 2, 16}, {13, 33, 17}, {12, 32, 32}, {97, 31, 41}, {5, 801, 7}, {600, 45, 33},
	{1300, 200, 64}, {1030, 1, 48}, {700, 13, 1}, {257, 64, 130}, {40, 1600, 5}, {3000, 20, 70}, {30, 9, 1100}}

// Rounded products have the same bits with every instruction set, with the instructions for bfloat16 and
// without, with zeros skipped or not, and with any number of workers.
func TestRoundedProductsHaveTheSameBits(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	for _, s := range roundedShapes {
		for _, zeros := range []float64{0, 0.9} {
			for _, half := range []bool{false, true} {
				m, k, n := s[0], s[1], s[2]
				a, b, c := wideNumbers(r, m*k, zeros), wideNumbers(r, k*n, 0), wideNumbers(r, m*n, zeros)
				start := wideNumbers(r, max(m*n, k*n, m*k), 0.3)
				want := products(roundingTeam(t, avx.None.String(), true, 1), m, k, n, a, b, c, start, half)
				for _, kernel := range Compiled() {
					if kernel == openBLAS || !slices.Contains(Variants(), kernel) {
						continue
					}
					for _, emulates := range []bool{false, true} {
						got := products(roundingTeam(t, kernel, emulates, 2), m, k, n, a, b, c, start, half)
						for name, w := range want {
							if i := firstDifference(got[name], w); i >= 0 {
								t.Errorf("%s %v, %v zeros, half %t, %s, emulates %t: element %d is %x, want %x", name, s, zeros, half,
									kernel, emulates, i, math.Float32bits(got[name][i]), math.Float32bits(w[i]))
							}
						}
					}
				}
			}
		}
	}
	if avx.Best() == avx.AVX512 && !avx.Best().HasPairs() {
		t.Log("this processor has no instructions for bfloat16")
	}
}

func firstDifference(a, b []float32) int {
	for i := range b {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}
