package ptx

import "math"

// extended returns the integer of kind k in the lower bits of u, sign-extended.
func extended(u uint64, k kind) uint64 {
	n := 64 - 8*k.size()
	if k.signed() {
		return uint64(int64(u<<n) >> n)
	}
	return u << n >> n
}

// integerToInteger executes cvt between integers: modulo 2^width, or with cut saturated.
func integerToInteger(w *warp, in *inst) {
	d, a := &w.regs[in.d], &w.regs[in.a]
	switch {
	case in.cut:
		for _, l := range w.lanes {
			d[l&31] = saturated(extended(a[l&31], in.from), in.from.signed(), in.kind)
		}
	case in.from == s32 && in.kind.size() == 8:
		for _, l := range w.lanes {
			d[l&31] = uint64(get[int32](a, l))
		}
	case in.kind == u32 || in.from == u32 && in.kind.size() == 8:
		for _, l := range w.lanes {
			x := a[l&31]
			if in.from.size() < 4 {
				x = extended(x, in.from)
			}
			d[l&31] = uint64(uint32(x))
		}
	default:
		for _, l := range w.lanes {
			d[l&31] = extended(extended(a[l&31], in.from), in.kind)
		}
	}
}

// saturated returns the nearest integer of kind k.
func saturated(x uint64, signed bool, k kind) uint64 {
	n := 8 * k.size()
	switch {
	case signed && k.signed():
		limit := int64(uint64(1)<<(n-1) - 1)
		return uint64(max(-limit-1, min(limit, int64(x))))
	case signed && int64(x) < 0:
		return 0
	case k.signed():
		return min(x, uint64(1)<<(n-1)-1)
	}
	return min(x, ^uint64(0)>>(64-n))
}

// integerToFloat executes cvt of an integer, correctly rounded.
func integerToFloat(w *warp, in *inst) {
	unary(w, in, func(x uint64) uint64 { return fromInteger(extended(x, in.from), in.from.signed(), in) })
}

func fromInteger(x uint64, signed bool, in *inst) uint64 {
	direct := in.kind == f32 && in.round <= nearest // float64 would round a 64-bit integer twice
	switch {
	case direct && signed:
		return uint64(math.Float32bits(float32(int64(x))))
	case direct:
		return uint64(math.Float32bits(float32(x)))
	case signed:
		return narrowed(float64(int64(x)), in)
	}
	return narrowed(float64(x), in)
}

// narrowed returns the bits of x, exact in float64, as a float of the instruction's kind.
func narrowed(x float64, in *inst) uint64 {
	switch in.kind {
	case f64:
		return math.Float64bits(x)
	case f16:
		return uint64(roundBits(x, in.round, 10, 15))
	case bf16:
		return uint64(roundBits(x, in.round, 7, 127))
	}
	return uint64(math.Float32bits(round32(x, in.round)))
}

// floatToFloat executes cvt between floats, or to a whole number as a float.
func floatToFloat(w *warp, in *inst) {
	unary(w, in, func(bits uint64) uint64 {
		x := widened(bits, in.from)
		if in.op == opRem {
			x = wholeNumber(x, in.round)
		}
		if in.cut {
			x = clamped(x)
		}
		return narrowed(x, in)
	})
}

// widened returns a float of kind k as a float64, which is exact.
func widened(u uint64, k kind) float64 {
	switch k {
	case f64:
		return math.Float64frombits(u)
	case f32:
		return float64(math.Float32frombits(uint32(u)))
	case bf16:
		return float64(math.Float32frombits(uint32(u) << 16))
	}
	return half(uint16(u))
}

// half returns the value of 16 bits in binary16.
func half(u uint16) float64 {
	sign, exp, frac := u>>15, int(u>>10&31), float64(u&1023)
	x := 0.0
	switch exp {
	case 0:
		x = math.Ldexp(frac, -24)
	case 31:
		x = math.Inf(1)
		if frac != 0 {
			x = math.NaN()
		}
	default:
		x = math.Ldexp(1024+frac, exp-25)
	}
	if sign != 0 {
		x = math.Copysign(x, -1)
	}
	return x
}

// roundBits returns x in a 16-bit format with the given fraction bits and bias. NaN is the
// canonical one.
func roundBits(x float64, r rounding, frac, bias int) uint16 {
	if x != x {
		return 0x7fff
	}
	sign := uint16(0)
	if math.Signbit(x) {
		sign, x = 1<<15, -x
		switch r {
		case down:
			r = up
		case up:
			r = down
		}
	}
	if x == 0 {
		return sign
	}
	inf := uint16(2*bias+1) << frac
	if math.IsInf(x, 0) {
		return sign | inf
	}
	// In units of the last place of x's binade, or of the subnormal numbers.
	_, exp := math.Frexp(x)
	exp = max(exp-1, 1-bias)
	scaled := math.Ldexp(x, frac-exp)
	n := wholeNumber(scaled, r)
	// A carry into the next binade gives the correct number.
	u := uint64(n) + uint64(exp-1+bias)<<frac
	if u >= uint64(inf) {
		u = uint64(inf)
		if r == zero || r == down {
			u--
		}
	}
	return sign | uint16(u)
}

// wholeNumber rounds to an integer.
func wholeNumber(x float64, r rounding) float64 {
	switch r {
	case zero:
		return math.Trunc(x)
	case down:
		return math.Floor(x)
	case up:
		return math.Ceil(x)
	}
	return math.RoundToEven(x)
}

// floatToInteger executes cvt to an integer: saturated, and 0 for NaN.
func floatToInteger(w *warp, in *inst) {
	unary(w, in, func(x uint64) uint64 { return toInteger(wholeNumber(widened(x, in.from), in.round), in.kind) })
}

func toInteger(x float64, k kind) uint64 {
	n := 8 * k.size()
	low, high := 0.0, math.Ldexp(1, n)
	if k.signed() {
		low, high = -math.Ldexp(1, n-1), math.Ldexp(1, n-1)
	}
	switch {
	case x != x:
		return 0
	case x <= low:
		return extended(saturated(1<<63, true, k), k)
	case x >= high:
		return saturated(1<<63-1, true, k) | map[bool]uint64{true: 1 << 63}[n == 64 && !k.signed()]
	case k.signed():
		return uint64(int64(x))
	}
	return uint64(x)
}
