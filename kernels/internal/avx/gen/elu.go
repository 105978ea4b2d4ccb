package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// elu generates the routines of a layer with ELU, and of a mean of heads.
func elu(s isa) {
	eluForward(s)
	eluGradient(s)
	meanOf(s)
	spread(s)
}

// single32 returns a float32, broadcast to all lanes of a register.
func (s isa) single32(name string, v float64) VecVirtual {
	m, r := GLOBL(name+s.name, RODATA|NOPTR), s.vec()
	DATA(0, U32(math.Float32bits(float32(v))))
	VBROADCASTSS(m, r)
	return r
}

// constant returns a float32 in all lanes: in a register, or in memory with AVX2, which has 16
// registers.
func (s isa) constant(name string, v float64) Op {
	if s.wide {
		return s.single32(name, v)
	}
	return single(name, v)
}

// exponentialLess1 computes e^x - 1 for x in [-30, 0] as (e^r - 1)·2^n + (2^n - 1) with
// |r| ≤ ln2/2, without cancellation near 0, where n is 0. e^r - 1 is r + r²·q(r), a Taylor
// polynomial. The first omitted term is 2e-8 of it; with rounding, the relative error of the
// result is 1e-7. A NaN stays NaN.
type exponentialLess1 struct {
	s             isa
	log2e, hi, lo Op
	one           Op // 1 = 2^0
	coefficients  []Op
}

func newExponentialLess1(s isa) *exponentialLess1 {
	const hi = 355. / 512 // its product with n is exact
	e := &exponentialLess1{
		s: s, log2e: s.constant("log2e", math.Log2E), one: s.constant("one", 1),
		hi: s.constant("ln2hi", hi), lo: s.constant("ln2lo", math.Ln2-hi),
	}
	factorial := 1.0
	for k := 2.0; k < 8; k++ {
		factorial *= k
		e.coefficients = append(e.coefficients, s.constant("taylor"+string(rune('a'+int(k))), 1/factorial))
	}
	return e
}

// of replaces x by e^x - 1.
func (e *exponentialLess1) of(x VecVirtual) {
	n, power, q := e.s.vec(), e.s.vec(), e.s.vec()
	VMULPS(e.log2e, x, n)
	VCVTPS2DQ(n, power)
	VCVTDQ2PS(power, n)
	VPSLLD(U8(23), power, power)
	VPADDD(e.one, power, power)
	VFNMADD231PS(e.hi, n, x)
	VFNMADD231PS(e.lo, n, x)
	last := len(e.coefficients) - 1
	if s := e.s; s.wide {
		VMOVAPS(e.coefficients[last], q)
	} else {
		VMOVUPS(e.coefficients[last], q)
	}
	for k := last - 1; k >= 0; k-- {
		VFMADD213PS(e.coefficients[k], x, q)
	}
	VMULPS(x, q, q)
	VFMADD213PS(x, x, q) // e^r - 1
	VSUBPS(e.one, power, x)
	VFMADD231PS(q, power, x)
}

// eluForward generates dst = elu(z + bias), as max(x, -0) + (e^min(x, 0) - 1), where the sign of
// the second term is always set: zeros become -0.
func eluForward(s isa) {
	routine("elu"+s.name, "func(dst, z, bias *float32, full, lanes int)",
		"Sets dst to the ELU of z + bias. Its zeros are negative.")
	dst, z, bias := arg("dst"), arg("z"), arg("bias")
	e := newExponentialLess1(s)
	least, negative, zero := s.single32("least", -30), s.single32("negative", math.Copysign(0, -1)), s.vec()
	s.zero(zero)
	eachVector(s, func(at func(Register) Mem, mask Register) {
		x, v := s.loaded(at(z), mask), s.loaded(at(bias), mask)
		VADDPS(v, x, x)
		// The minimum and maximum of a NaN and a number are the first operand here.
		VMINPS(x, zero, v)
		VMAXPS(v, least, v)
		e.of(v)
		VORPS(negative, v, v)
		VMAXPS(negative, x, x)
		VADDPS(x, v, v)
		s.store(v, mask, at(dst))
	})
}

// eluGradient generates dst = scale·g·(min(h, 0)·kept + 1), and 0 where h is +0. It rounds where
// plain Go rounds.
func eluGradient(s isa) {
	routine("eluGradient"+s.name, "func(dst, grad, h *float32, scale, kept float32, full, lanes int)",
		"Sets dst to the gradient of the input of an ELU and dropout with the result h, 0 where h is +0.")
	dst, g, h := arg("dst"), arg("grad"), arg("h")
	scale, kept, zero, one := s.vec(), s.vec(), s.vec(), s.single32("whole", 1)
	VBROADCASTSS(place(Param("scale")), scale)
	VBROADCASTSS(place(Param("kept")), kept)
	s.zero(zero)
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v, x, slope := s.loaded(at(g), mask), s.loaded(at(h), mask), s.vec()
		VMULPS(scale, v, v)
		VMINPS(x, zero, slope)
		VMULPS(kept, slope, slope)
		VADDPS(one, slope, slope)
		VMULPS(slope, v, v)
		if s.wide {
			there := K()
			VPTESTMD(x, x, there)
			VMOVAPS_Z(v, there, v)
		} else {
			VPCMPEQD(zero, x, x)
			VANDNPS(v, x, v)
		}
		s.store(v, mask, at(dst))
	})
}

// eachHead generates a loop over the heads of a vector. place advances by step bytes.
func eachHead(step, at Register, label string, body func(head Mem)) {
	head, left := GP64(), arg("heads")
	MOVQ(at, head)
	Label(label)
	body(Mem{Base: head})
	ADDQ(step, head)
	DECQ(left)
	JNZ(LabelRef(label))
}

// meanOf generates dst = bias + scale·Σ x over heads that are step bytes apart.
func meanOf(s isa) {
	routine("meanOf"+s.name, "func(dst, x, bias *float32, step, heads int, scale float32, full, lanes int)",
		"Sets dst to bias plus scale times the sum of the heads of x.")
	dst, x, bias := arg("dst"), arg("x"), arg("bias")
	step, scale := arg("step"), s.parameter("scale")
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v, from := s.loaded(at(bias), mask), GP64()
		LEAQ(at(x), from)
		eachHead(step, from, headLabel(mask), func(head Mem) { s.fmaFrom(head, scale, mask, v) })
		s.store(v, mask, at(dst))
	})
}

// spread generates the copies of scale·g to each head of dst.
func spread(s isa) {
	routine("spread"+s.name, "func(dst, grad *float32, step, heads int, scale float32, full, lanes int)",
		"Sets each head of dst to scale times grad.")
	dst, g := arg("dst"), arg("grad")
	step, scale := arg("step"), s.parameter("scale")
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v, to := s.loaded(at(g), mask), GP64()
		VMULPS(scale, v, v)
		LEAQ(at(dst), to)
		eachHead(step, to, headLabel(mask), func(head Mem) { s.store(v, mask, head) })
	})
}

// headLabel returns the label of the loop over heads, for full vectors or for the last one.
func headLabel(mask Register) string {
	if mask != nil {
		return "last_head"
	}
	return "head"
}
