package ptx

import "math"

// rounding is the rounding mode of a result.
type rounding uint8

const (
	unrounded rounding = iota
	nearest            // to the nearest, ties to even
	zero               // towards 0
	down               // towards -∞
	up                 // towards +∞
)

// canonical is the NaN result of min and max of f32.
var canonical = math.Float32frombits(0x7fffffff)

// float2 computes d = a op b, rounded to the nearest as IEEE 754 says: Go's arithmetic.
func float2[T float32 | float64](w *warp, in *inst) {
	d, a, b := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b]
	switch in.op {
	case opAdd:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)+get[T](b, l))
		}
	case opSub:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)-get[T](b, l))
		}
	case opMul:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)*get[T](b, l))
		}
	case opDiv:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)/get[T](b, l))
		}
	case opMin:
		for _, l := range w.lanes {
			put(d, l, smaller(get[T](a, l), get[T](b, l)))
		}
	case opMax:
		for _, l := range w.lanes {
			put(d, l, -smaller(-get[T](a, l), -get[T](b, l)))
		}
	case opCopysign:
		for _, l := range w.lanes {
			put(d, l, T(math.Copysign(float64(get[T](b, l)), float64(get[T](a, l)))))
		}
	}
}

// smaller returns the smaller of a and b, with -0 below +0; if one is a NaN, the other.
func smaller[T float32 | float64](a, b T) T {
	switch {
	case a != a && b != b:
		return T(canonical)
	case a != a:
		return b
	case b != b:
		return a
	}
	return min(a, b)
}

// float1 computes d = op a. Square roots and reciprocals are correctly rounded: float64 has more
// than twice the bits of float32 plus two. The others, which PTX has only as approximations
// within some ulp, use package math, rounded to float32.
func float1[T float32 | float64](w *warp, in *inst) {
	unary(w, in, func(x T) T { return T(function1(in.op, float64(x))) })
}

func function1(o op, x float64) float64 {
	switch o {
	case opSqrt:
		return math.Sqrt(x)
	case opRcp:
		return 1 / x
	case opRsqrt:
		return 1 / math.Sqrt(x)
	case opEx2:
		return math.Exp2(x)
	case opLg2:
		return math.Log2(x)
	case opSin:
		return math.Sin(x)
	case opCos:
		return math.Cos(x)
	case opTanh:
		return math.Tanh(x)
	}
	return x
}

// signed1 executes neg and abs, which change a bit, of NaN also.
func signed1[T uint16 | uint32 | uint64](w *warp, in *inst) {
	unary(w, in, func(x T) T {
		sign := T(1) << (width[T]() - 1)
		if in.op == opNeg {
			return x ^ sign
		}
		return x &^ sign
	})
}

// fma32 computes d = a b + c with one rounding.
func fma32(w *warp, in *inst) {
	d, a, b, c := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	for _, l := range w.lanes {
		put(d, l, fused(get[float32](a, l), get[float32](b, l), get[float32](c, l)))
	}
}

func fma64(w *warp, in *inst) {
	d, a, b, c := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	for _, l := range w.lanes {
		put(d, l, math.FMA(get[float64](a, l), get[float64](b, l), get[float64](c, l)))
	}
}

// fused returns a b + c rounded once. The product is exact in float64: 24 bits times 24 bits
// are 48. The sum s is rounded to 53 bits, and rounding s to 24 bits equals rounding the exact
// sum, unless s is a midpoint between two float32 neighbours (farther apart below the normal
// numbers). There oddSum decides, which records the side of the exact sum.
func fused(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	u := math.Float64bits(s)
	if u&(1<<29-1) != 1<<28 && u&^(1<<63) >= 0x3810000000000000 || s == 0 {
		return float32(s)
	}
	return float32(oddSum(p, float64(c)))
}

// oddSum returns x + y, rounded to odd: the exact sum if it is a float64, else the neighbour
// whose last bit is set. Rounding it again, in any direction, to at least two bits less equals
// rounding the exact sum (Boldo and Melquiond, Emulation of FMA and correctly rounded sums,
// 2008).
func oddSum(x, y float64) float64 {
	s := x + y
	if math.IsInf(s, 0) || s != s {
		return s
	}
	// Knuth's two-sum: err is the exact error of s.
	v := s - x
	err := (x - (s - v)) + (y - v)
	if err == 0 {
		return s
	}
	u := math.Float64bits(s)
	if u&1 != 0 {
		return s
	}
	if (err > 0) == (s > 0) {
		return math.Float64frombits(u + 1)
	}
	return math.Float64frombits(u - 1)
}

// directed32 executes add, sub, mul and fma with a rounding other than the nearest.
func directed32(w *warp, in *inst) {
	d, a, b, c := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	for _, l := range w.lanes {
		x, y := float64(get[float32](a, l)), float64(get[float32](b, l))
		var s float64
		switch in.op {
		case opAdd:
			s = signedZero(oddSum(x, y), x, y, in.round)
		case opSub:
			s = signedZero(oddSum(x, -y), x, -y, in.round)
		case opMul:
			s = x * y
		default:
			z := float64(get[float32](c, l))
			s = signedZero(oddSum(x*y, z), x*y, z, in.round)
		}
		put(d, l, round32(s, in.round))
	}
}

// signedZero gives the zero sum of x and -x the sign of rounding r.
func signedZero(s, x, y float64, r rounding) float64 {
	if s == 0 && r == down && (math.Signbit(x) || math.Signbit(y)) {
		return math.Copysign(0, -1)
	}
	return s
}

// round32 returns x, exact or rounded to odd, as a float32.
func round32(x float64, r rounding) float32 {
	n := float32(x)
	if r <= nearest || x != x || float64(n) == x {
		return n
	}
	if math.IsInf(x, 0) {
		return n
	}
	below, above := n, n
	if float64(n) > x {
		below = math.Nextafter32(n, float32(math.Inf(-1)))
	} else {
		above = math.Nextafter32(n, float32(math.Inf(1)))
	}
	if r == up || r == zero && x < 0 {
		return above
	}
	return below
}

// flush replaces subnormal numbers by zeros of the same sign; clamp limits numbers to 0..1,
// and NaN becomes 0.
func flush(w *warp, in *inst) { unary(w, in, flushed) }

func flushed(x uint32) uint32 {
	if x&0x7f800000 == 0 {
		return x & 0x80000000
	}
	return x
}

func clamp(w *warp, in *inst) { unary(w, in, clamped[float32]) }

func clamped[T float32 | float64](x T) T {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}
