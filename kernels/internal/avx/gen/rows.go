package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// eachVector generates a routine that runs body over a row: full vectors, then the last vector
// with its mask. at returns the address of the vector in an array.
func eachVector(s isa, body func(at func(base Register) Mem, mask Register)) {
	overVectors(s, body)
	VZEROUPPER()
	RET()
}

// overVectors generates the loop of eachVector.
func overVectors(s isa, body func(at func(base Register) Mem, mask Register)) {
	mask := s.mask("lanes")
	full, offset := Load(Param("full"), GP64()), GP64()
	XORQ(offset, offset)
	at := func(base Register) Mem { return Mem{Base: base, Index: offset, Scale: 1} }
	Label("next")
	TESTQ(full, full)
	JZ(LabelRef("last"))
	body(at, nil)
	ADDQ(U8(s.bytes), offset)
	DECQ(full)
	JMP(LabelRef("next"))
	Label("last")
	body(at, mask)
}

// activate writes dst = max(z + bias, floor); a floor of -Inf is no ReLU. The
// maximum of a NaN is the NaN.
func activate(s isa) {
	TEXT("activate"+s.name, NOSPLIT, "func(dst, z, bias *float32, floor float32, full, lanes int)")
	Doc("Sets dst to the larger of z + bias and floor.")
	Pragma("noescape")
	dst, z, bias := Load(Param("dst"), GP64()), Load(Param("z"), GP64()), Load(Param("bias"), GP64())
	floor := s.vec()
	VBROADCASTSS(place(Param("floor")), floor)
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v, b := s.vec(), s.vec()
		s.load(at(z), mask, v)
		s.load(at(bias), mask, b)
		VADDPS(b, v, v)
		VMAXPS(v, floor, v)
		s.store(v, mask, at(dst))
	})
}

// gradient writes dst = scale*g where h is positive, else 0.
func gradient(s isa) {
	TEXT("gradient"+s.name, NOSPLIT, "func(dst, grad, h *float32, scale float32, full, lanes int)")
	Doc("Sets dst to scale times g where h is positive and to 0 elsewhere.")
	Pragma("noescape")
	dst, g, h := Load(Param("dst"), GP64()), Load(Param("grad"), GP64()), Load(Param("h"), GP64())
	scale, zero := s.vec(), s.vec()
	VBROADCASTSS(place(Param("scale")), scale)
	s.zero(zero)
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v, x := s.vec(), s.vec()
		s.load(at(g), mask, v)
		s.load(at(h), mask, x)
		VMULPS(scale, v, v)
		if s.wide {
			positive := K()
			VCMPPS(U8(greater), zero, x, positive)
			VMOVAPS_Z(v, positive, v)
		} else {
			VCMPPS(U8(greater), zero, x, x)
			VANDPS(x, v, v)
		}
		s.store(v, mask, at(dst))
	})
}

// addRow writes dst += x.
func addRow(s isa) {
	TEXT("addRow"+s.name, NOSPLIT, "func(dst, x *float32, full, lanes int)")
	Doc("Adds x to dst.")
	Pragma("noescape")
	dst, x := Load(Param("dst"), GP64()), Load(Param("x"), GP64())
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v, d := s.vec(), s.vec()
		s.load(at(x), mask, v)
		s.load(at(dst), mask, d)
		VADDPS(v, d, d)
		s.store(d, mask, at(dst))
	})
}
