package avx

import "math"

// FMA returns x·y + z with one rounding, in Go, as the assembly computes it.
//
// The compiler may fuse x*y + z too, and does so on arm64. Go code whose bits matter therefore
// calls FMA or a function below, or rounds the product explicitly: float32(x*y) + z.
//
// The product of two float32 is exact in float64. The sum in float64 is rounded a second time
// in float32. The second rounding is wrong only if the sum is halfway between two float32, or
// if it is subnormal in float32, whose halfway points are elsewhere.
func FMA(x, y, z float32) float32 {
	s := float64(x)*float64(y) + float64(z)
	if isCritical(s) {
		return roundOnce(float64(x)*float64(y), float64(z), s)
	}
	return float32(s)
}

// leastNormal has the bits of the least normal float32, in float64.
const leastNormal = (1023 - 126) << 52

// isCritical reports whether a second rounding of s may be wrong. A zero is exact.
func isCritical(s float64) bool {
	b := math.Float64bits(s)
	return b&(1<<29-1) == 1<<28 || b<<1-1 < leastNormal<<1-1
}

// roundOnce rounds p + z to float32. s is the sum rounded to float64. If s is inexact and its last
// bit is even, its neighbour on the other side of the sum replaces it: the second rounding then cannot
// take s for exact (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
func roundOnce(p, z, s float64) float32 {
	t := s - p
	e := (p - (s - t)) + (z - t) // the error of s (Knuth's TwoSum)
	if b := math.Float64bits(s); e != 0 && b&1 == 0 {
		if (e > 0) == (s > 0) {
			s = math.Float64frombits(b + 1)
		} else {
			s = math.Float64frombits(b - 1)
		}
	}
	return float32(s)
}

// AddScaled adds scale times x to dst, of the same length: dst[j] = scale·x[j] + dst[j].
//
// Four elements at a time: conversions depend on the last value of a register, so that
// one register would make a chain of all elements.
func AddScaled(dst, x []float32, scale float32) {
	x = x[:len(dst)]
	w := float64(scale)
	j := 0
	for ; j+4 <= len(dst); j += 4 {
		d, x := dst[j:j+4:j+4], x[j:j+4:j+4]
		a, b := w*float64(x[0])+float64(d[0]), w*float64(x[1])+float64(d[1])
		c, e := w*float64(x[2])+float64(d[2]), w*float64(x[3])+float64(d[3])
		if isCritical(a) || isCritical(b) || isCritical(c) || isCritical(e) {
			for i, v := range x {
				d[i] = FMA(scale, v, d[i])
			}
			continue
		}
		d[0], d[1], d[2], d[3] = float32(a), float32(b), float32(c), float32(e)
	}
	for ; j < len(dst); j++ {
		dst[j] = FMA(scale, x[j], dst[j])
	}
}

// AddScaledWide is AddScaled for float32 that are stored as float64: it takes no conversions.
func AddScaledWide(dst, x []float64, scale float64) {
	x = x[:len(dst)]
	j := 0
	for ; j+4 <= len(dst); j += 4 {
		d, x := dst[j:j+4:j+4], x[j:j+4:j+4]
		// Half a unit in the last place of float32 rounds to the nearest, except halfway.
		const half, rest = 1 << 28, 1<<29 - 1
		a, b := math.Float64bits(scale*x[0]+d[0])+half, math.Float64bits(scale*x[1]+d[1])+half
		c, e := math.Float64bits(scale*x[2]+d[2])+half, math.Float64bits(scale*x[3]+d[3])+half
		if isCriticalSum(a) || isCriticalSum(b) || isCriticalSum(c) || isCriticalSum(e) {
			addScaledSlowly(d, x, scale)
			continue
		}
		d[0], d[1] = math.Float64frombits(a&^rest), math.Float64frombits(b&^rest)
		d[2], d[3] = math.Float64frombits(c&^rest), math.Float64frombits(e&^rest)
	}
	addScaledSlowly(dst[j:], x[j:], scale)
}

// isCriticalSum reports whether bits, with half a unit in the last place of float32 added, may not be
// truncated: halfway, zero, subnormal, or beyond float32.
func isCriticalSum(b uint64) bool {
	return b&(1<<29-1) == 0 || b<<1-leastNormal<<1 >= (254<<53)
}

func addScaledSlowly(dst, x []float64, scale float64) {
	for j, z := range dst {
		p := scale * x[j]
		s := p + z
		if isCritical(s) {
			dst[j] = float64(roundOnce(p, z, s))
			continue
		}
		dst[j] = float64(float32(s))
	}
}

// AddProducts adds the products of x and y to dst, all of the same length: dst[j] = x[j]·y[j] + dst[j].
func AddProducts(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for j, z := range dst {
		s := float64(x[j])*float64(y[j]) + float64(z)
		if isCritical(s) {
			dst[j] = FMA(x[j], y[j], z)
			continue
		}
		dst[j] = float32(s)
	}
}
