package kerneltest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"siafu/kernels"
)

// workers contains the team sizes whose results must be equal.
var workers = []int{1, 2, 3, 5}

// brief means that the suite is short.
var brief bool

// Brief makes the suite of this test binary short, for an Ops that is a thousand times slower
// than a processor. Teams have one size, because such an Ops does not use them. Large shapes are
// smaller, but still exceed one block of an Ops.
func Brief() { brief, workers = true, workers[:1] }

// size returns n, or less in a short suite.
func size(n, less int) int {
	if brief {
		return less
	}
	return n
}

// sizes has the sizes of two dimensions, with their names.
type sizes struct {
	first   string
	firsts  []int
	second  string
	seconds []int
}

// run runs f as a subtest for each pair of sizes.
func (s sizes) run(t *testing.T, f func(t *testing.T, first, second int)) {
	for _, a := range s.firsts {
		for _, b := range s.seconds {
			t.Run(fmt.Sprintf("%s=%d/%s=%d", s.first, a, s.second, b), func(t *testing.T) { f(t, a, b) })
		}
	}
}

// guardBits is a NaN that arithmetic does not produce.
const (
	guardBits = 0x7fc5afe5
	guardLen  = 33 // odd, so that arrays are aligned to 4 bytes only
)

// guarded returns a copy of v between guards.
func guarded(v []float32) []float32 {
	all := make([]float32, len(v)+2*guardLen)
	for i := range all {
		all[i] = math.Float32frombits(guardBits)
	}
	copy(all[guardLen:], v)
	return all[guardLen : guardLen+len(v)]
}

// checkGuards checks the guards after v, which guarded must have allocated.
func checkGuards(t *testing.T, v []float32) {
	t.Helper()
	after := v[len(v) : len(v)+guardLen]
	for i, g := range after {
		if math.Float32bits(g) != guardBits {
			t.Fatalf("element %d written, %d behind the end", len(v)+i, i+1)
		}
	}
}

// poison returns n NaNs that a kernel must overwrite.
func poison(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.NaN())
	}
	return v
}

// outcome runs a kernel on copies of start with each team size. It fails unless the bits are
// equal and the guards unchanged. The first team runs twice, so that the second run reuses the
// scratch memory of the first.
func (s Suite) outcome(t *testing.T, start []float32, run func(l *fixture, dst []float32)) []float32 {
	t.Helper()
	return outcome(t, start, func(team *kernels.Team, dst []float32) {
		l := s.newFixture(team)
		defer l.done()
		run(l, dst)
	})
}

// both runs a kernel whose dst [rows x cols] may be its operand x, out of place and in place. It
// fails unless both results are want; nil stands for the first result, which it returns.
func (s Suite) both(t *testing.T, rows, cols int, x, want []float32, run func(l *fixture, dst, x kernels.Mat)) []float32 {
	t.Helper()
	got := s.outcome(t, poison(rows*cols), func(l *fixture, dst []float32) { run(l, l.out(rows, cols, dst), l.in(rows, cols, x)) })
	if want != nil {
		same(t, got, want)
	}
	same(t, s.outcome(t, x, func(l *fixture, dst []float32) { run(l, l.out(rows, cols, dst), l.in(rows, cols, dst)) }), got)
	return got
}

// outcome calls Suite.outcome with a run that uses a team. Teams of different sizes have different
// instruction sets.
func outcome(t *testing.T, start []float32, run func(team *kernels.Team, dst []float32)) []float32 {
	t.Helper()
	var first []float32
	for i, n := range workers {
		team := kernels.NewTeam(n)
		if first == nil {
			first = guarded(start)
			run(team, first)
		}
		if err := team.Use(exact[(i+1)%len(exact)]); err != nil {
			t.Fatal(err)
		}
		dst := guarded(start)
		run(team, dst)
		team.Close()
		checkGuards(t, dst)
		for i := range dst {
			if !identical(dst[i], first[i]) {
				t.Fatalf("element %d is %v with %d workers and %s, %v the first time with 1 and %s", i, dst[i], n,
					team.Kernel(), first[i], exact[0])
			}
		}
	}
	return first
}

// exact has the variants of kernels of this machine that give the same bits, the best first.
var exact = slices.DeleteFunc(kernels.Variants(), func(name string) bool { return name == "openblas" })

// identical reports whether a and b have the same bits. All NaNs are identical: processors differ in
// the bits of new ones.
func identical(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// sum is a sum in float64, with the sizes and number of terms that bound its error in float32.
type sum struct {
	value, size float64
	terms       int
}

func (s *sum) add(term float64) {
	s.value += term
	s.size += math.Abs(term)
	s.terms++
}

// unit is half the distance from 1 to the next float32.
const unit = 1.0 / (1 << 24)

// bound returns the maximum error of the sum in float32. Each term has up to three roundings,
// and each addition adds one. The last part is for subnormal terms.
func (s *sum) bound() float64 {
	return float64(s.terms+4)*unit*s.size + math.SmallestNonzeroFloat32*float64(s.terms+1)
}

func compareSums(t *testing.T, got []float32, want []sum) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	for i, g := range got {
		compare(t, i, float64(g), want[i].value, want[i].bound())
	}
}

// compare fails unless got is within bound of want. A NaN or an infinity must be equal.
func compare(t *testing.T, i int, got, want, bound float64) {
	switch {
	case math.IsNaN(want):
		if math.IsNaN(got) {
			return
		}
	case math.IsInf(want, 0) || math.IsInf(got, 0):
		if got == want {
			return
		}
	case math.Abs(got-want) <= bound:
		return
	}
	t.Helper() // after the comparison, because Helper is slower
	t.Fatalf("element %d is %v, want %v within %.2g", i, got, want, bound)
}

// same fails unless all values are equal. All NaNs are equal.
func same(t *testing.T, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	for i := range got {
		compare(t, i, float64(got[i]), float64(want[i]), 0)
	}
}

// Values returns n non-zero random numbers in ±(0.25, 1.25) between guards. The seed determines
// them.
func Values(n int, seed uint64) []float32 {
	rng := rand.New(rand.NewPCG(seed, 0))
	v := make([]float32, n)
	for i := range v {
		v[i] = rng.Float32() + 0.25
		if rng.IntN(2) == 0 {
			v[i] = -v[i]
		}
	}
	return guarded(v)
}

// insertNonFinite sets a few elements of v to NaN and the infinities.
func insertNonFinite(v []float32) {
	for i, s := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if n := len(v); n > 0 {
			v[(i*n/3+i)%n] = float32(s)
		}
	}
}
