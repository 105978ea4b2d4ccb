package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// extent generates the search for the least and the largest element of a row, and a sum that is NaN
// unless all are finite.
func extent(s isa) {
	routine("extent"+s.name, "func(x *float32, full, lanes int) (lo, hi, poison float32)",
		"Returns the least and the largest element of x, and 0, or NaN if an element is not finite.")
	x := arg("x")
	lo, hi, poison, zero := s.vec(), s.vec(), s.vec(), s.vec()
	VBROADCASTSS(Mem{Base: x}, lo)
	VMOVUPS(lo, hi)
	s.zero(poison)
	s.zero(zero)
	overVectors(s, func(at func(Register) Mem, mask Register) {
		v := s.vec()
		s.loadOver(at(x), mask, lo, v)
		VMINPS(v, lo, lo)
		VMAXPS(v, hi, hi)
		VFMADD231PS(v, zero, poison)
	})
	for _, r := range []struct {
		v    VecVirtual
		name string
		fold func(a, b VecVirtual)
	}{
		{lo, "lo", func(a, b VecVirtual) { VMINPS(b, a, a) }},
		{hi, "hi", func(a, b VecVirtual) { VMAXPS(b, a, a) }},
		{poison, "poison", func(a, b VecVirtual) { VADDPS(b, a, a) }},
	} {
		VMOVSS(s.fold(r.v, r.fold), place(Return(r.name)))
	}
	leave()
}

// loadOver generates the load of a vector, with masked lanes from other.
func (s isa) loadOver(m Mem, mask Register, other, dst VecVirtual) {
	switch {
	case mask == nil:
		VMOVUPS(m, dst)
	case s.wide:
		VMOVUPS(other, dst)
		VMOVUPS(m, mask, dst)
	default:
		VMASKMOVPS(m, mask, dst)
		VBLENDVPS(mask, dst, other, dst)
	}
}

// fold combines all lanes of v in the first.
func (s isa) fold(v VecVirtual, with func(a, b VecVirtual)) Register {
	if s.wide {
		half := YMM()
		VEXTRACTF64X4(U8(1), v, half)
		with(v.AsY().(VecVirtual), half)
	}
	quarter, low := XMM(), v.AsX().(VecVirtual)
	VEXTRACTF128(U8(1), v.AsY(), quarter)
	with(low, quarter)
	for _, order := range []uint64{0b01_00_11_10, 0b10_11_00_01} {
		VPERMILPS(U8(order), low, quarter)
		with(low, quarter)
	}
	return low
}

// codes generates the rounding of a row to codes of some bits. A batch has eight columns per
// counter: four vectors. Two vectors of words are drawn for them, with one number in the lower
// halves and one in the upper halves.
func codes(s isa, bits int) {
	routine(fmt.Sprintf("codes%sx%d", s.name, bits), "func(draw *uint32, dst *byte, x *float32, offset, inverse float32, id uint32, n int)",
		fmt.Sprintf("Rounds x to codes of %d bits. It writes whole vectors of codes.", bits))
	q := newQuantiser(s, bits)
	q.row(s.parameter("id"))
	block := s.lanes64(fmt.Sprintf("counters%dx", bits), func(lane int) int { return lane })
	left := arg("n")
	lanes := s.bytes / 4

	Label("next")
	CMPQ(left, U8(4*lanes))
	JLT(LabelRef("last"))
	for j, u := range q.numbers(block) {
		q.vector(j, u, nil)
	}
	VPADDD(q.step, block, block)
	ADDQ(U32(4*s.bytes), q.x)
	ADDQ(U8(lanes*bits/2), q.dst)
	SUBQ(U8(4*lanes), left)
	JMP(LabelRef("next"))

	Label("last")
	CMPQ(left, U8(0))
	JE(LabelRef("end"))
	numbers, most := q.numbers(block), GP64()
	MOVQ(U32(lanes), most)
	for j, u := range numbers {
		// One vector at a time: the last one is the first with at most lanes remaining elements.
		count := GP64()
		MOVQ(left, count)
		CMPQ(count, most)
		CMOVQGT(most, count)
		q.vector(j, u, s.maskOf(count))
		SUBQ(U8(lanes), left)
		JLE(LabelRef("end"))
	}
	Label("end")
	leave()
}

// quantiser contains the inputs of codes except random numbers. Constants are operands in
// memory, because AVX2 has no free registers.
type quantiser struct {
	*philox
	bits           int
	pairs          odd
	dst, x         Register
	step, low, top Mem // counters of a batch, the lower halves, the largest code
	first, second  Mem // weights that join codes
}

func newQuantiser(s isa, bits int) *quantiser {
	q := &quantiser{philox: newPhilox(s), bits: bits, pairs: s.odd(0xaa)}
	q.dst, q.x = arg("dst"), arg("x")
	constant := func(name string, value int) Mem {
		m := GLOBL(fmt.Sprintf("%s%dx%s", name, bits, s.name), RODATA|NOPTR)
		for lane := range s.bytes / 8 {
			DATA(8*lane, U64(value|value<<32))
		}
		return m
	}
	q.low, q.top = constant("low", 0xffff), constant("top", 1<<bits-1)
	q.step = constant("step", s.bytes/8)
	switch bits {
	case 4:
		q.first = constant("first", 0x10011001)
	case 2:
		q.first, q.second = constant("first", 0x04010401), constant("second", 0x00100001)
	}
	return q
}

// parameter returns the float parameter called name in all lanes.
func (s isa) parameter(name string) VecVirtual {
	v := s.vec()
	VBROADCASTSS(place(Param(name)), v)
	return v
}

// numbers returns the random numbers of a batch, 16 bits in the lower half of each lane, one
// vector per vector of columns.
func (q *quantiser) numbers(block VecVirtual) [4]VecVirtual {
	s, w := q.s, q.words(block)
	q.pairs.low(w[1], w[0])
	q.pairs.low(w[3], w[2])
	a, b := w[0], w[2]
	if s.wide { // both halves of 32 columns, adjacent
		a, b = s.vec(), s.vec()
		VSHUFI64X2(U8(0b01_00_01_00), w[2], w[0], a)
		VSHUFI64X2(U8(0b11_10_11_10), w[2], w[0], b)
	}
	upper := func(v VecVirtual) VecVirtual {
		u := s.vec()
		VPSRLD(U8(16), v, u)
		return u
	}
	a16, b16 := upper(a), upper(b)
	q.and(q.low, a)
	q.and(q.low, b)
	if s.wide {
		return [4]VecVirtual{a, a16, b, b16}
	}
	return [4]VecVirtual{a, b, a16, b16}
}

// and generates v &= w.
func (p *philox) and(w Op, v VecVirtual) {
	if p.s.wide {
		VPANDD(w, v, v)
		return
	}
	VPAND(w, v, v)
}

// vector generates the rounding of vector j of a batch with the random numbers u. Codes of masked
// lanes are 0.
func (q *quantiser) vector(j int, u VecVirtual, mask Register) {
	s, v := q.s, q.s.vec()
	s.load(Mem{Base: q.x, Disp: j * s.bytes}, mask, v)
	VSUBPS(s.parameter("offset"), v, v)
	VMULPS(s.parameter("inverse"), v, v)
	VCVTPS2DQ(v, v)
	VPADDD(u, v, v)
	VPSRLD(U8(16), v, v)
	switch {
	case mask == nil:
		VPMINUD(q.top, v, v)
	case s.wide:
		VPMINUD_Z(q.top, v, mask, v)
	default:
		VPMINUD(q.top, v, v)
		VPAND(mask, v, v)
	}
	q.join(v, Mem{Base: q.dst, Disp: j * s.bytes / 4 * q.bits / 8})
}

// join generates the store of the codes in v, without gaps.
func (q *quantiser) join(v VecVirtual, m Mem) {
	b := XMM()
	if q.s.wide {
		VPMOVDB(v, b)
	} else {
		VPACKUSDW(v, v, v)
		VPERMQ(U8(0b1000), v, v)
		VPACKUSWB(v.AsX(), v.AsX(), b)
	}
	switch q.bits {
	case 4:
		VPMADDUBSW(q.first, b, b)
		VPACKUSWB(b, b, b)
	case 2:
		VPMADDUBSW(q.first, b, b)
		VPMADDWD(q.second, b, b)
		VPACKUSDW(b, b, b)
		VPACKUSWB(b, b, b)
	}
	switch q.s.bytes / 4 * q.bits / 8 {
	case 16:
		VMOVDQU(b, m)
	case 8:
		VMOVQ(b, m)
	case 4:
		VMOVD(b, m)
	case 2:
		VPEXTRW(U8(0), b, m)
	}
}

// values generates a routine that stores or adds the values of codes.
func values(s isa, bits int, add bool) {
	name := "values"
	if add {
		name = "addValues"
	}
	routine(fmt.Sprintf("%s%sx%d", name, s.name, bits), "func(dst *float32, codes *byte, offset, step float32, full, lanes int)",
		fmt.Sprintf("Decodes codes of %d bits. It reads whole vectors of codes.", bits))
	dst, from := arg("dst"), arg("codes")
	offset, step := s.parameter("offset"), s.parameter("step")
	split := newSplitter(s, name, bits)
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v := split.vector(Mem{Base: from})
		VCVTDQ2PS(v, v)
		VFMADD213PS(offset, step, v)
		if add {
			s.addFrom(at(dst), mask, v)
		}
		s.store(v, mask, at(dst))
		ADDQ(U8(s.bytes/4*bits/8), from)
	})
}

// splitter extracts codes. It has the shifts of 2-bit codes in a word, and the largest code.
type splitter struct {
	s           isa
	bits        int
	shifts, top VecVirtual
}

func newSplitter(s isa, name string, bits int) splitter {
	p := splitter{s: s, bits: bits}
	if bits == 8 {
		return p
	}
	p.top = s.vec()
	broadcastBits(1<<bits-1, p.top)
	if bits == 2 {
		p.shifts = s.lanes64(name+"shifts", func(lane int) int { return 4*lane | (4*lane+2)<<32 })
	}
	return p
}

// vector returns a vector of codes, one per lane.
func (p splitter) vector(m Mem) VecVirtual {
	v := p.s.vec()
	switch p.bits {
	case 8:
		VPMOVZXBD(m, v)
		return v
	case 4: // a byte in each 64-bit lane, its upper half moved to the odd lane
		VPMOVZXBQ(m, v)
		upper := p.s.vec()
		VPSLLQ(U8(28), v, upper)
		p.or(upper, v)
	case 2:
		if p.s.wide {
			VPBROADCASTD(m, v)
		} else {
			VPBROADCASTW(m, v)
		}
		VPSRLVD(p.shifts, v, v)
	}
	(&philox{s: p.s}).and(p.top, v)
	return v
}

func (p splitter) or(w, v VecVirtual) {
	if p.s.wide {
		VPORD(w, v, v)
		return
	}
	VPOR(w, v, v)
}
