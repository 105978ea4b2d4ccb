// Package elementary has elementary functions with the same bits on every processor, and Mix, a hash
// function for random numbers.
//
// Functions of package math differ in the last bit between processors: some are in assembly, and
// the compiler fuses multiplications and additions of others on some architectures. Here
// every operation is rounded, or fused by math.FMA. Results equal those of package math on amd64 with FMA.
package elementary

import "math"

// taylor has 1/k! from k = 1 on.
var taylor = [...]float64{
	1, 0.5, 1.6666666666666666667e-1, 4.1666666666666666667e-2, 8.3333333333333333333e-3,
	1.3888888888888888889e-3, 1.9841269841269841270e-4, 2.4801587301587301587e-5,
}

// Exp returns e^x.
//
// With x = n·ln2 + 16y, e^x is 2^n·(1 + z)^16 and z = e^y - 1 a Taylor polynomial. (1+z)² - 1 is z·(z+2).
func Exp(x float64) float64 {
	const (
		ln2hi, ln2lo = 0.69314718055966295651160180568695068359375, 0.28235290563031577122588448175013436025525412068e-12
		most, least  = 7.09782712893384e+02, -746
	)
	switch {
	case math.IsNaN(x):
		return x
	case x > most:
		return math.Inf(1)
	case x < least:
		return 0
	}
	n := math.RoundToEven(x * math.Log2E)
	y := math.FMA(-n, ln2lo, math.FMA(-n, ln2hi, x)) * 0.0625
	p := taylor[len(taylor)-1]
	for i := len(taylor) - 2; i >= 0; i-- {
		p = math.FMA(p, y, taylor[i])
	}
	z := float64(y * p)
	for range 3 {
		z = float64(z * (z + 2))
	}
	return scaled(math.FMA(z+2, z, 1), int(n))
}

// scaled returns x·2^n with one rounding; n is at most 1024.
func scaled(x float64, n int) float64 {
	switch biased := n + 1023; {
	case biased >= 0x7ff:
		return math.Inf(1)
	case biased < -52:
		return 0
	case biased <= 0:
		return x * power(n+1022) * power(-1022)
	}
	return x * power(n)
}

// power returns 2^n, a normal number.
func power(n int) float64 { return math.Float64frombits(uint64(n+1023) << 52) }

// polynomial returns c[0] + x·(c[1] + x·(…)).
func polynomial(x float64, c []float64) float64 {
	r := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		r = float64(x*r) + c[i]
	}
	return r
}
