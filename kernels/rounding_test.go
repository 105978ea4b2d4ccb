package kernels

import (
	"fmt"
	"math"
	"math/rand"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

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

// rounded returns x rounded to eight significant bits, ties to even, in another way than the kernels.
func rounded(x float32) float64 {
	fraction, exponent := math.Frexp(float64(x))
	v := math.Ldexp(math.RoundToEven(fraction*256), exponent-8)
	if math.Abs(v) < math.Ldexp(1, -56) {
		return 0
	}
	return v
}

// A rounded product is the sum of the products of rounded operands, up to the roundings of the sum: for
// tiles of each height and of one and two vectors, full and partial.
func TestRoundedProductsOfDefinition(t *testing.T) {
	team := roundingTeam(t, Best(), false, 1)
	r := rand.New(rand.NewSource(3))
	for m := 1; m <= 13; m++ {
		for _, n := range []int{3, 16, 25, 32, 47} {
			for _, k := range []int{1, 6, 31, 65, 300} {
				a, b, dst := wideNumbers(r, m*k, 0.2), wideNumbers(r, k*n, 0), make([]float32, m*n)
				turned := transpose(make([]float32, m*k), a, m, k)
				for _, transposed := range []bool{false, true} {
					if transposed {
						team.MatMulTransA(HostMat(m, n, dst), HostMat(k, m, turned), HostMat(k, n, b), false)
					} else {
						team.MatMul(HostMat(m, n, dst), HostMat(m, k, a), HostMat(k, n, b), false)
					}
					for i := range dst {
						want, size := 0.0, 0.0
						for p := range k {
							x := rounded(a[i/n*k+p]) * rounded(b[p*n+i%n])
							want, size = want+x, size+math.Abs(x)
						}
						if d := math.Abs(float64(dst[i]) - want); !(d <= float64(k)*0x1p-24*size) {
							t.Fatalf("%d x %d x %d, transposed %t: element %d is %v, want %v", m, k, n, transposed, i, dst[i], want)
						}
					}
				}
			}
		}
	}
}

// NaNs, infinities and overflows reach the elements that they reach without rounding.
func TestRoundedProductsPassNonFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, emulates := range []bool{false, true} {
		team := roundingTeam(t, Best(), emulates, 1)
		for _, x := range []float32{inf, -inf, float32(math.NaN()), math.Float32frombits(0x7f800001), math.MaxFloat32} {
			const m, k, n = 5, 37, 20
			a, b, dst := slices.Repeat([]float32{1}, m*k), slices.Repeat([]float32{1}, k*n), make([]float32, m*n)
			want := x
			a[2*k+36] = x
			if x == math.MaxFloat32 {
				want = inf // its nearest number in bfloat16
			}
			team.MatMul(HostMat(m, n, dst), HostMat(m, k, a), HostMat(k, n, b), false)
			for i, got := range dst {
				if i/n != 2 && got != k || i/n == 2 && got != want && (got == got || want == want) {
					t.Fatalf("%v, emulates %t: element %d is %v", x, emulates, i, got)
				}
			}
		}
	}
}

// Guards around operands and results are neither read nor written.
func TestRoundedProductsStayInTheirMatrices(t *testing.T) {
	const m, k, n, guard = 25, 43, 21, 64
	team := roundingTeam(t, Best(), false, 1)
	r := rand.New(rand.NewSource(5))
	fenced := func(rows, cols int) ([]float32, []float32) {
		all := slices.Repeat([]float32{float32(math.NaN())}, rows*cols+2*guard)
		inner := all[guard:][:rows*cols]
		copy(inner, wideNumbers(r, len(inner), 0))
		return all, inner
	}
	_, a := fenced(m, k)
	_, b := fenced(k, n)
	_, g := fenced(m, n)
	check := func(name string, all, inner []float32) {
		for i, v := range all {
			if inside := i >= guard && i < guard+len(inner); inside != (v == v) {
				t.Fatalf("%s: element %d is %v", name, i-guard, v)
			}
		}
	}
	all, dst := fenced(m, n)
	team.MatMul(HostMat(m, n, dst), HostMat(m, k, a), HostMat(k, n, b), false)
	check("MatMul", all, dst)
	all, dst = fenced(m, k)
	team.MatMulTransB(HostMat(m, k, dst), HostMat(m, n, g), HostMat(k, n, b), false)
	check("MatMulTransB", all, dst)
	all, dst = fenced(k, n)
	team.MatMulTransA(HostMat(k, n, dst), HostMat(m, k, a), HostMat(m, n, g), false)
	check("MatMulTransA", all, dst)
}

// BenchmarkRoundedProducts compares the products of a layer in float32 and rounded to bfloat16, with one
// worker: minima of the processor times of interleaved runs.
func BenchmarkRoundedProducts(b *testing.B) {
	const rows, runs = 100_000, 12
	for _, shape := range [][2]int{{128, 128}, {602, 128}, {256, 256}, {128, 41}, {64, 256}} {
		k, n := shape[0], shape[1]
		r := rand.New(rand.NewSource(1))
		random := func(rows, cols int) Mat {
			x := make([]float32, rows*cols)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			return HostMat(rows, cols, x)
		}
		h, w, g, z, gw, gh := random(rows, k), random(k, n), random(rows, n), random(rows, n), random(k, n), random(rows, k)
		b.Run(fmt.Sprintf("%dx%d", k, n), func(b *testing.B) {
			exact, rounding := NewTeam(1), NewTeam(1)
			rounding.RoundOperands(true)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			least := map[string]float64{}
			run := func(name string, f func()) {
				start := threadTime(b)
				f()
				if ms := float64(threadTime(b)-start) / 1e6; least[name] == 0 || ms < least[name] {
					least[name] = ms
				}
			}
			for b.Loop() {
				for range runs {
					for name, team := range map[string]*Team{"float32": exact, "bf16": rounding} {
						run("HW-"+name+"-ms", func() { team.MatMul(z, h, w, false) })
						run("GWt-"+name+"-ms", func() { team.MatMulTransB(gh, g, w, false) })
						run("HtG-"+name+"-ms", func() { team.MatMulTransA(gw, h, g, false) })
					}
				}
			}
			for name, ms := range least {
				b.ReportMetric(ms, name)
			}
		})
	}
}

// threadTime returns the processor time of this thread in nanoseconds.
func threadTime(b *testing.B) int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		b.Fatal(err)
	}
	return now.Nano()
}
