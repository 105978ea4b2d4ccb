package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// narrow generates the conversion of full vectors of scale*x to bfloat16, rounded to nearest, ties
// to even: it adds half of the last remaining place, minus one if that place is even. NaNs are
// replaced, because the addition could carry into the sign.
func narrow(s isa) {
	routine("narrow"+s.name, "func(dst *uint16, x *float32, scale float32, vectors int)",
		"Sets dst to scale times x in bfloat16, whole vectors.")
	dst, x, n := arg("dst"), arg("x"), arg("vectors")
	scale, one, bias, nan := s.parameter("scale"), s.vec(), s.vec(), s.vec()
	broadcastBits(1, one)
	broadcastBits(0x7fff, bias)
	broadcastBits(0x7fc00000, nan)
	Label("next")
	v := s.vec()
	VMULPS(Mem{Base: x}, scale, v)
	s.roundBits(v, one, bias, nan)
	if s.wide {
		VPSRLD(U8(16), v, v)
		VPMOVDW(v, Mem{Base: dst})
	} else {
		VPSRLD(U8(16), v, v)
		VPACKUSDW(v, v, v)
		VPERMQ(U8(0b1000), v, v)
		VMOVUPS(v.AsX(), Mem{Base: dst})
	}
	ADDQ(U8(s.bytes), x)
	ADDQ(U8(s.bytes/2), dst)
	DECQ(n)
	JNZ(LabelRef("next"))
	leave()
}

// roundBits rounds v to bfloat16 in the upper halves.
func (s isa) roundBits(v, one, bias, nan VecVirtual) {
	const unordered = 3
	odd := s.vec()
	VPSRLD(U8(16), v, odd)
	if s.wide {
		isNaN := K()
		VPANDD(one, odd, odd)
		VCMPPS(U8(unordered), v, v, isNaN)
		VPADDD(bias, odd, odd)
		VPADDD(odd, v, v)
		VMOVDQA32(nan, isNaN, v)
	} else {
		isNaN := s.vec()
		VPAND(one, odd, odd)
		VCMPPS(U8(unordered), v, v, isNaN)
		VPADDD(bias, odd, odd)
		VPADDD(odd, v, v)
		VBLENDVPS(isNaN, nan, v, v)
	}
}

// widen generates the conversion of full vectors of x from bfloat16 to float32. With add, the
// routine adds them to dst.
func widen(s isa, add bool) {
	name, doc := "widen", "Sets dst to x, which is bfloat16, whole vectors."
	if add {
		name, doc = "widenAdd", "Adds x, which is bfloat16, to dst, whole vectors."
	}
	routine(name+s.name, "func(dst *float32, x *uint16, vectors int)", doc)
	dst, x, n := arg("dst"), arg("x"), arg("vectors")
	v := s.vec()
	Label("next")
	VPMOVZXWD(Mem{Base: x}, v)
	VPSLLD(U8(16), v, v)
	if add {
		VADDPS(Mem{Base: dst}, v, v)
	}
	s.store(v, nil, Mem{Base: dst})
	ADDQ(U8(s.bytes/2), x)
	ADDQ(U8(s.bytes), dst)
	DECQ(n)
	JNZ(LabelRef("next"))
	leave()
}
