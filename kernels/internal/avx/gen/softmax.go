package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// constant returns a float64 in read-only memory, to be broadcast.
func constant(name string, v float64) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	DATA(0, U64(math.Float64bits(v)))
	return m
}

// exponential computes e^x for x ≤ 0 in four lanes of float64: 2^n·e^r with |r| ≤ ln2/2, by a
// Taylor polynomial. The first omitted term is 6e-15. Inputs below -708 count as -708, and a NaN
// stays NaN.
type exponential struct {
	least, log2e, hi, lo, shift VecVirtual
	coefficients                []Mem
}

func newExponential() *exponential {
	e := &exponential{}
	hi := math.Float64frombits(math.Float64bits(math.Ln2) &^ (1<<32 - 1)) // its product with n is exact
	for _, c := range []struct {
		to   *VecVirtual
		name string
		v    float64
	}{
		{&e.least, "least", -708}, {&e.log2e, "log2e", math.Log2E}, {&e.hi, "ln2hi", hi},
		{&e.lo, "ln2lo", math.Ln2 - hi}, {&e.shift, "shift", 3 << 51},
	} {
		*c.to = YMM()
		VBROADCASTSD(constant(c.name, c.v), *c.to)
	}
	factorial := 1.0
	for k := range 12 {
		factorial *= float64(max(k, 1))
		m := GLOBL("taylor"+string(rune('a'+k)), RODATA|NOPTR)
		for lane := range 4 {
			DATA(8*lane, U64(math.Float64bits(1/factorial)))
		}
		e.coefficients = append(e.coefficients, m)
	}
	return e
}

// of replaces x by its exponential. Adding 1.5·2^52 to n leaves n in the low bits, from which n
// is shifted to the exponent.
func (e *exponential) of(x VecVirtual) {
	n, p := YMM(), YMM()
	VMAXPD(x, e.least, x)
	VMULPD(x, e.log2e, n)
	VROUNDPD(U8(8), n, n)
	VFNMADD231PD(e.hi, n, x)
	VFNMADD231PD(e.lo, n, x)
	last := len(e.coefficients) - 1
	VMOVUPD(e.coefficients[last], p)
	for k := last - 1; k >= 0; k-- {
		VFMADD213PD(e.coefficients[k], x, p)
	}
	VADDPD(e.shift, n, n)
	VPSLLQ(U8(52), n, n)
	VPADDQ(n, p, x)
}

// softmax generates the softmax of a row, times a scale, in three passes: the largest element,
// exponentials and their sum, the division. It uses float64, four lanes at a time, with AVX-512
// too, because rows are short.
func softmax() {
	routine("softmaxRow", "func(dst, z *float32, scale float64, full, lanes int) (top float32, sum float64)",
		"Sets dst, unless it is nil, to scale times the softmax of z. It returns the largest element and the sum of e^(z-top).")
	dst, z, lanes := arg("dst"), arg("z"), arg("lanes")
	s, window, lastMask := isa{}, GP64(), XMM()
	LEAQ(NewDataAddr(Symbol{Name: "ones", Static: true}, 32), window)
	SHLQ(U8(2), lanes)
	SUBQ(lanes, window)
	VMOVUPS(Mem{Base: window}, lastMask)

	// pass runs body over the vectors of a row, the last one masked.
	pass := func(name string, body func(offset, mask Register)) {
		full, offset := arg("full"), GP64()
		XORQ(offset, offset)
		countdown(name, name+"_last", full, func() {
			body(offset, nil)
			ADDQ(U8(16), offset)
		})
		body(offset, lastMask)
	}
	// The maximum of the previous maximum and a NaN is the previous maximum.
	top, least := XMM(), XMM()
	bits := GP32()
	MOVL(U32(0xff800000), bits)
	VMOVD(bits, least)
	VPBROADCASTD(least, least)
	VMOVUPS(least, top)
	pass("largest", func(offset, mask Register) {
		x := XMM()
		s.load(Mem{Base: z, Index: offset, Scale: 1}, mask, x)
		if mask != nil {
			VBLENDVPS(mask, x, least, x)
		}
		VMAXPS(top, x, top)
	})
	other := XMM()
	VPERMILPS(U8(0b01_00_11_10), top, other)
	VMAXPS(other, top, top)
	VPERMILPS(U8(0b10_11_00_01), top, other)
	VMAXPS(other, top, top)
	VMOVSS(top, place(ReturnIndex(0)))
	wideTop := YMM()
	VCVTPS2PD(top, wideTop)

	e := newExponential()
	sum, wideMask := YMM(), YMM()
	VXORPD(sum, sum, sum)
	VPMOVSXDQ(lastMask, wideMask)
	pass("exponentials", func(offset, mask Register) {
		x, narrow := YMM(), XMM()
		s.load(Mem{Base: z, Index: offset, Scale: 1}, mask, narrow)
		VCVTPS2PD(narrow, x)
		VSUBPD(wideTop, x, x)
		e.of(x)
		if mask != nil {
			VANDPD(wideMask, x, x)
		}
		VADDPD(x, sum, sum)
		label := "skip"
		if mask != nil {
			label = "skip_last"
		}
		TESTQ(dst, dst)
		JZ(LabelRef(label))
		VCVTPD2PSY(x, narrow)
		s.store(narrow, mask, Mem{Base: dst, Index: offset, Scale: 1})
		Label(label)
	})
	half := XMM()
	VEXTRACTF128(U8(1), sum, half)
	VADDPD(half, sum.AsX(), half)
	swapped := XMM()
	VPERMILPD(U8(1), half, swapped)
	VADDSD(swapped, half, half)
	VMOVSD(half, place(ReturnIndex(1)))

	TESTQ(dst, dst)
	JZ(LabelRef("done"))
	factor := YMM()
	narrowFactor := XMM()
	VMOVSD(place(Param("scale")), narrowFactor)
	VDIVSD(half, narrowFactor, narrowFactor)
	VBROADCASTSD(narrowFactor, factor)
	pass("division", func(offset, mask Register) {
		x, narrow := YMM(), XMM()
		s.load(Mem{Base: dst, Index: offset, Scale: 1}, mask, narrow)
		VCVTPS2PD(narrow, x)
		VMULPD(factor, x, x)
		VCVTPD2PSY(x, narrow)
		s.store(narrow, mask, Mem{Base: dst, Index: offset, Scale: 1})
	})
	Label("done")
	leave()
}
