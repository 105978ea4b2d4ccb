package kernels

import (
	"math"

	"siafu/kernels/internal/avx"
)

// Exponential functions with the operations of package avx: 2^n·e^r with |r| ≤ ln2/2, by a Taylor
// polynomial. Their errors are documented at the assembly's generator.

// ln2 in two parts. The product of the first part and n is exact.
const (
	ln2hi = 355. / 512
	ln2lo = math.Ln2 - ln2hi
)

// factorials32 has 1/k!.
var factorials32 = [...]float32{1, 1, 1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040}

// exp32 returns e^x: 0 below -86, and e^87 above 87.
func exp32(x float32) float32 {
	switch {
	case x != x:
		return x
	case x < -86:
		return 0
	case x > 87:
		x = 87
	}
	n, x := reduce32(x)
	p := factorials32[len(factorials32)-1]
	for k := len(factorials32) - 2; k >= 0; k-- {
		p = avx.FMA(p, x, factorials32[k])
	}
	return math.Float32frombits(math.Float32bits(p) + uint32(int32(n))<<23)
}

// reduce32 returns n and the rest r of x = n·ln2 + r.
func reduce32(x float32) (n, r float32) {
	n = float32(math.RoundToEven(float64(float32(x * math.Log2E))))
	r = avx.FMA(-n, ln2hi, x)
	return n, avx.FMA(-n, ln2lo, r)
}

// expLess1 returns e^x - 1 for x in [-30, 0], as (e^r - 1)·2^n + (2^n - 1).
func expLess1(x float32) float32 {
	if x != x {
		return x
	}
	n, x := reduce32(x)
	power := math.Float32frombits(math.Float32bits(1) + uint32(int32(n))<<23)
	q := factorials32[len(factorials32)-1]
	for k := len(factorials32) - 2; k >= 2; k-- {
		q = avx.FMA(q, x, factorials32[k])
	}
	q = avx.FMA(x, x*q, x)
	return avx.FMA(q, power, power-1)
}

// factorials64 has 1/k!.
var factorials64 = func() (c [12]float64) {
	factorial := 1.0
	for k := range c {
		factorial *= float64(max(k, 1))
		c[k] = 1 / factorial
	}
	return c
}()

// exp64 returns e^x for x ≤ 0; x below -708 counts as -708.
func exp64(x float64) float64 {
	if x != x {
		return x
	}
	hi := math.Float64frombits(math.Float64bits(math.Ln2) &^ (1<<32 - 1)) // its product with n is exact
	x = max(x, -708)
	n := math.RoundToEven(x * math.Log2E)
	x = math.FMA(-n, hi, x)
	x = math.FMA(-n, math.Ln2-hi, x)
	p := factorials64[len(factorials64)-1]
	for k := len(factorials64) - 2; k >= 0; k-- {
		p = math.FMA(p, x, factorials64[k])
	}
	return math.Float64frombits(math.Float64bits(p) + uint64(int64(n))<<52)
}

// tanhRow sets dst to outer·tanh(inner·x) + add. With e = e^(-2|y|) - 1, tanh |y| is -e/(2 + e).
func tanhRow(dst, x []float32, inner, outer, add float32) {
	for i, v := range x {
		v = float32(v * inner)
		double := v + v
		e := expLess1(max(-float32(math.Abs(float64(double))), -30))
		t := float32(math.Copysign(float64(e/(e+2)), float64(v)))
		dst[i] = float32(t*outer) + add
	}
}
