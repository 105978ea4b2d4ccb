package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gates generates dst = outer·tanh(inner·x) + add, of which the logistic function is a case. With
// e = e^(-2|y|) - 1, tanh |y| is -e/(2 + e), without cancellation. |y| above 15 is as 15, where tanh
// is 1.
func gates(s isa) {
	routine("tanh"+s.name, "func(dst, x *float32, inner, outer, add float32, full, lanes int)",
		"Sets dst to outer times the hyperbolic tangent of inner times x, plus add.")
	dst, x := arg("dst"), arg("x")
	inner, outer, add := s.parameter("inner"), s.parameter("outer"), s.parameter("add")
	e := newExponentialLess1(s)
	least, negative, two := s.constant("least", -30), s.single32("negative", math.Copysign(0, -1)), s.constant("two", 2)
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v, sign, below := s.loaded(at(x), mask), s.vec(), s.vec()
		VMULPS(inner, v, v)
		VANDPS(negative, v, sign)
		VADDPS(v, v, v)
		VORPS(negative, v, v)
		if s.wide { // the maximum of a NaN and a number is the first operand here
			VMAXPS(v, least.(VecVirtual), v)
		} else {
			VMOVUPS(least, below)
			VMAXPS(v, below, v)
		}
		e.of(v)
		VADDPS(two, v, below)
		VDIVPS(below, v, v) // -tanh |y|
		VANDNPS(v, negative, v)
		VORPS(sign, v, v)
		VMULPS(outer, v, v)
		VADDPS(add, v, v)
		s.store(v, mask, at(dst))
	})
}
