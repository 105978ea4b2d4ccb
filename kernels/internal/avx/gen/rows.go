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
	leave()
}

// overVectors generates the loop of eachVector.
func overVectors(s isa, body func(at func(base Register) Mem, mask Register)) {
	mask := s.mask("lanes")
	full, offset := arg("full"), GP64()
	XORQ(offset, offset)
	at := func(base Register) Mem { return Mem{Base: base, Index: offset, Scale: 1} }
	countdown("next", "last", full, func() {
		body(at, nil)
		ADDQ(U8(s.bytes), offset)
	})
	body(at, mask)
}

// activate generates dst = max(z + bias, floor). A floor of -Inf means no ReLU. The maximum of a
// NaN is NaN.
func activate(s isa) {
	routine("activate"+s.name, "func(dst, z, bias *float32, floor float32, full, lanes int)",
		"Sets dst to max(z + bias, floor).")
	dst, z, bias := arg("dst"), arg("z"), arg("bias")
	floor := s.parameter("floor")
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v, b := s.loaded(at(z), mask), s.loaded(at(bias), mask)
		VADDPS(b, v, v)
		VMAXPS(v, floor, v)
		s.store(v, mask, at(dst))
	})
}

// gradient generates dst = scale*g where h is positive, else 0.
func gradient(s isa) {
	routine("gradient"+s.name, "func(dst, grad, h *float32, scale float32, full, lanes int)",
		"Sets dst to scale times grad where h is positive, else to 0.")
	dst, g, h := arg("dst"), arg("grad"), arg("h")
	scale, zero := s.parameter("scale"), s.vec()
	s.zero(zero)
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v, x := s.loaded(at(g), mask), s.loaded(at(h), mask)
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

// addRow generates dst += x.
func addRow(s isa) {
	routine("addRow"+s.name, "func(dst, x *float32, full, lanes int)",
		"Adds x to dst.")
	dst, x := arg("dst"), arg("x")
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v, d := s.loaded(at(x), mask), s.loaded(at(dst), mask)
		VADDPS(v, d, d)
		s.store(d, mask, at(dst))
	})
}

// addRows generates dst += the sum of rows of x, which stays in registers.
func addRows(s isa) {
	routine("addRows"+s.name, "func(dst, x *float32, stride, rows, vectors, lanes int)",
		"Adds vectors of rows of x, stride bytes apart, to dst in order.")
	dst, x, stride, rows, mask := arg("dst"), arg("x"), arg("stride"), arg("rows"), s.mask("lanes")
	tiles("tile", 8, func(name string, vectors int) {
		sums := s.loadTile(dst, mask, vectors)
		countdown(name+"_row", name+"_store", rows, func() {
			for i, sum := range sums {
				s.addFrom(Mem{Base: x, Disp: s.bytes * i}, onlyLast(mask, i, vectors), sum)
			}
			ADDQ(stride, x)
		})
		s.storeTile(sums, mask, dst)
		leave()
	})
}
