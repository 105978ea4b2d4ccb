package kernels

import (
	"slices"
	"strings"
	"time"

	"siafu/internal/fault"
	"siafu/kernels/internal/avx"
)

// The variants of kernels. All but openblas give the same bits.
//
//	avx512, avx2   package avx
//	openblas       the machine's OpenBLAS for dense products, package avx for the rest
//	go             plain Go

const openBLAS = "openblas"

// CPUVariable is the environment variable with which tests make a processor look older.
const CPUVariable = avx.CPUVariable

// Variants returns the names that Use accepts on this machine and in this build, best first.
func Variants() []string { return upTo(avx.Best()) }

// Compiled returns the names of the variants in this build, best first. The processor may lack some.
func Compiled() []string { return upTo(avx.Compiled) }

func upTo(best avx.Set) []string {
	var names []string
	for set := best; set > avx.None; set-- {
		names = append(names, set.String())
	}
	if _, ok := openBLASLevel3(); ok {
		names = append(names, openBLAS)
	}
	return append(names, avx.None.String())
}

// Kernel returns the name of the current variant.
func (t *Team) Kernel() string { return t.kernel }

// Use selects a variant. It returns a Config fault if this machine or build lacks it.
func (t *Team) Use(kernel string) error {
	if kernel == openBLAS {
		return t.useOpenBLAS()
	}
	for set := avx.None; set <= avx.Best(); set++ {
		if set.String() == kernel {
			t.kernel, t.set = kernel, set
			t.product = product{newLevel3(set), avxRows, avxTall, true}
			return nil
		}
	}
	return fault.New(fault.Config, "kernels", "", "kernels %q are unavailable on this machine or in this build", kernel).
		Then("use one of %s", strings.Join(Variants(), ", "))
}

func (t *Team) useOpenBLAS() error {
	blas, ok := openBLASLevel3()
	if !ok {
		return fault.New(fault.Config, "kernels", "", "this build has no OpenBLAS").
			Then("install libopenblas-dev and build with -tags openblas, or use %s", Variants()[0])
	}
	t.kernel, t.set = openBLAS, avx.Best()
	t.product = product{blas, openblasRows, openblasRows, false}
	return nil
}

// Best returns the best variant of this processor and build with siafu's bits. No measurement
// decides: two equal runs would differ in their bits or in their speed.
func Best() string { return avx.Best().String() }

// Common returns the best variant of a run: the least of its ranks' Best. level is a rank's position in
// that order, for a minimum over ranks.
func Common(level int64) string { return avx.Set(level).String() }

// Level returns the position of Best among the variants with siafu's bits.
func Level() int64 { return int64(avx.Best()) }

// SameBits reports whether two variants give the same bits.
func SameBits(a, b string) bool { return (a == openBLAS) == (b == openBLAS) }

// Rates returns the rate of each variant in GFLOP/s. It measures a dense product in the caches with
// one worker, for a few milliseconds.
func Rates() map[string]float64 {
	rates := make(map[string]float64)
	team := NewTeam(1)
	defer team.Close()
	for _, v := range Variants() {
		if team.Use(v) == nil {
			rates[v] = productRate(team)
		}
	}
	return rates
}

// productRate returns the rate of the fastest of a few products; the first one warms up.
func productRate(t *Team) float64 {
	const m, n, k = 96, 128, 128
	ones := slices.Repeat([]float32{1}, m*k)
	a, b, c := HostMat(m, k, ones), HostMat(k, n, make([]float32, k*n)), HostMat(m, n, make([]float32, m*n))
	least := time.Hour
	for range 6 {
		start := time.Now()
		t.MatMul(c, a, b, false)
		least = min(least, time.Since(start))
	}
	return 2 * m * n * k / float64(max(least.Nanoseconds(), 1))
}
