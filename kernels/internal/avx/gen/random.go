package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets in avx.Draw.
const (
	drawFirst  = 80
	drawSecond = 84
	drawThird  = 88
	drawLast   = 92
	drawScale  = 96
)

// philox computes Philox4x32-10 of one counter in each 64-bit lane. Only the low half of a lane's
// word matters, which is what a multiplication reads. The product holds two words of the next
// round, with the low one in its place.
//
// Design note: with a word in each 32-bit lane, products of odd lanes would have to be shifted
// there and back. A round would take more than the six instructions that it takes here for half as
// many counters.
//
// Rounds 1 to 3 are split, because a row shares most of their work: a change of the block reaches
// one word per round. avx.Draw has the parts that depend on epoch and layer, the fields here have
// the parts that depend on the id.
type philox struct {
	s          isa
	draw       Register
	m0, m1     VecVirtual
	x, y, z, q VecVirtual
}

func newPhilox(s isa) *philox {
	p := &philox{s: s, draw: arg("draw")}
	for _, m := range []struct {
		to    *VecVirtual
		value uint32
	}{{&p.m0, 0xD2511F53}, {&p.m1, 0xCD9E8D57}} {
		*m.to = s.vec()
		broadcastBits(m.value, *m.to)
	}
	return p
}

func (p *philox) multiply(a, b VecVirtual) VecVirtual {
	product := p.s.vec()
	VPMULUDQ(a, b, product)
	return product
}

// high moves the high half of each product to the low half.
func (p *philox) high(product VecVirtual) VecVirtual {
	h := p.s.vec()
	VPSRLQ(U8(32), product, h)
	return h
}

// shuffled computes high on another port of the processor.
func (p *philox) shuffled(product VecVirtual) VecVirtual {
	h := p.s.vec()
	VPSHUFD(U8(0b11_11_01_01), product, h)
	return h
}

// xor generates v ^= w.
func (p *philox) xor(v, w VecVirtual) {
	if p.s.wide {
		VPXORD(w, v, v)
		return
	}
	VPXOR(w, v, v)
}

// xorKey generates dst = v ^ the word of avx.Draw at disp.
func (p *philox) xorKey(disp int, v, dst VecVirtual) {
	m := Mem{Base: p.draw, Disp: disp}
	if p.s.wide {
		VPXORD_BCST(m, v, dst)
		return
	}
	key := p.s.vec()
	VPBROADCASTD(m, key)
	VPXOR(key, v, dst)
}

// xorBoth generates v ^= w ^ the word of avx.Draw at disp.
func (p *philox) xorBoth(disp int, w, v VecVirtual) {
	if p.s.wide {
		VPTERNLOGD_BCST(U8(0x96), Mem{Base: p.draw, Disp: disp}, w, v)
		return
	}
	p.xor(v, w)
	p.xorKey(disp, v, v)
}

// key returns the offset in bytes of key k of a round.
func key(round, k int) int { return 8*round + 4*k }

// row generates the parts of rounds 1 to 3 that depend on the ids, one per lane.
func (p *philox) row(id VecVirtual) {
	a := p.multiply(p.m0, id)
	c := p.high(a)
	p.xorKey(drawThird, c, c)
	p.z = p.s.vec()
	p.xorKey(key(1, 1), a, p.z)
	b := p.multiply(p.m1, c)
	c = p.high(b)
	p.xorKey(drawSecond, c, c)
	p.y = p.s.vec()
	p.xorKey(key(2, 0), b, p.y)
	p.q = p.multiply(p.m0, c)
	p.x = p.high(p.q)
	p.xorKey(key(2, 1), p.x, p.x)
}

// words returns the four random words of each lane's block, in the low halves.
func (p *philox) words(block VecVirtual) [4]VecVirtual {
	start := p.s.vec()
	p.xorKey(drawFirst, block, start)
	a := p.multiply(p.m0, start)
	c2 := p.high(a)
	p.xor(c2, p.z)
	b := p.multiply(p.m1, c2)
	c0 := p.shuffled(b)
	p.xor(c0, p.y)
	p.xor(a, p.x)
	c := [4]VecVirtual{c0, b, a, p.q}
	for round := 3; round < 10; round++ {
		a, b := p.multiply(p.m0, c[0]), p.multiply(p.m1, c[2])
		h0, h1 := p.high(a), p.shuffled(b)
		p.xorBoth(key(round, 0), c[1], h1)
		p.xorBoth(key(round, 1), c[3], h0)
		c = [4]VecVirtual{h1, b, h0, a}
	}
	return c
}

// unpacked returns the random words of the even lanes' blocks, and of the odd lanes' blocks, in
// the order of columns.
func (p *philox) unpacked(block VecVirtual, oddWords odd) (even, odd VecVirtual) {
	w := p.words(block)
	oddWords.low(w[1], w[0])
	oddWords.low(w[3], w[2])
	even, odd = p.s.vec(), p.s.vec()
	VPUNPCKLQDQ(w[2], w[0], even)
	VPUNPCKHQDQ(w[2], w[0], odd)
	return even, odd
}

// lanes64 returns a vector in memory with a value for each 64-bit lane.
func (s isa) lanes64(name string, value func(lane int) int) VecVirtual {
	m := GLOBL(name+s.name, RODATA|NOPTR)
	for lane := range s.bytes / 8 {
		DATA(8*lane, U64(value(lane)))
	}
	v := s.vec()
	VMOVUPS(m, v)
	return v
}

// odd has a mask of the odd units of 32 or 64 bits of a vector.
type odd struct {
	s    isa
	k    Register
	bits uint64
}

func (s isa) odd(bits uint64) odd {
	o := odd{s: s, bits: bits}
	if s.wide {
		word := GP32()
		MOVL(U32(bits<<8|bits), word)
		o.k = K()
		KMOVW(word, o.k)
	}
	return o
}

// broadcast sets the odd units of v to the parameter called name.
func (o odd) broadcast(name string, v VecVirtual) {
	if o.s.wide {
		VBROADCASTSS(place(Param(name)), o.k, v)
		return
	}
	other := o.s.vec()
	VBROADCASTSS(place(Param(name)), other)
	VPBLENDD(U8(o.bits), other, v, v)
}

// low moves the even units of w to the odd units of v.
func (o odd) low(w, v VecVirtual) {
	const even = 0b10_10_00_00
	if o.s.wide {
		VPSHUFD(U8(even), w, o.k, v)
		return
	}
	t := o.s.vec()
	VPSHUFD(U8(even), w, t)
	VPBLENDD(U8(o.bits), t, v, v)
}

// dropout generates the dropout of two rows, or of two parts of one, a vector of each at a time.
// Even lanes have counters of the first, odd lanes of the second, so that one unpack instruction
// gives the words in the order of columns.
func dropout(s isa) {
	routine("dropout"+s.name, "func(draw *uint32, dst, x *float32, second int, idA, idB, blockB uint32, full, lanesA, lanesB int)",
		"Applies dropout to two rows, second bytes apart: full vectors of each, then lanesA and lanesB elements.")
	p := newPhilox(s)
	oddPairs, oddWords := s.odd(0xcc), s.odd(0xaa)
	id := s.parameter("idA")
	oddPairs.broadcast("idB", id)
	p.row(id)
	block, start := s.lanes64("block", func(lane int) int { return lane / 2 }), s.vec()
	p.xor(start, start)
	oddPairs.broadcast("blockB", start)
	VPADDD(start, block, block)
	step := s.lanes64("step", func(int) int { return s.bytes / 16 })

	second, from, to := arg("second"), arg("x"), arg("dst")
	fromB, toB := GP64(), GP64()
	LEAQ(Mem{Base: from, Index: second, Scale: 1}, fromB)
	LEAQ(Mem{Base: to, Index: second, Scale: 1}, toB)
	full, offset := arg("full"), GP64()
	XORQ(offset, offset)
	both := func(maskOf func(lanes string) Register) {
		a, b := p.unpacked(block, oddWords)
		p.apply(a, Mem{Base: from, Index: offset, Scale: 1}, Mem{Base: to, Index: offset, Scale: 1}, maskOf("lanesA"))
		p.apply(b, Mem{Base: fromB, Index: offset, Scale: 1}, Mem{Base: toB, Index: offset, Scale: 1}, maskOf("lanesB"))
	}
	countdown("next", "last", full, func() {
		both(func(string) Register { return nil })
		VPADDD(step, block, block)
		ADDQ(U8(s.bytes), offset)
	})
	both(s.mask)
	leave()
}

// keeps returns the words that retain their element: a mask register, or for AVX2 a vector,
// which replaces word. Masked lanes are not retained.
func (p *philox) keeps(word VecVirtual, mask Register) Register {
	last := Mem{Base: p.draw, Disp: drawLast}
	if !p.s.wide {
		least := p.s.vec()
		VPBROADCASTD(last, least)
		VPMINUD(least, word, least)
		VPCMPEQD(least, word, word)
		if mask != nil {
			VPAND(mask, word, word)
		}
		return word
	}
	const notAbove = 2
	keep := K()
	if mask == nil {
		VPCMPUD_BCST(U8(notAbove), last, word, keep)
	} else {
		VPCMPUD_BCST(U8(notAbove), last, word, mask, keep)
	}
	return keep
}

// scale returns the factor of retained elements.
func (p *philox) scale() VecVirtual {
	v := p.s.vec()
	VBROADCASTSS(Mem{Base: p.draw, Disp: drawScale}, v)
	return v
}

// apply generates the store of the retained elements of x, scaled, and of zeros.
func (p *philox) apply(word VecVirtual, x, dst Mem, mask Register) {
	s, keep, v := p.s, p.keeps(word, mask), p.scale()
	if s.wide {
		VMULPS_Z(x, v, keep, v)
	} else {
		e := s.loaded(x, mask)
		VMULPS(e, v, v)
		VANDPS(keep, v, v)
	}
	s.store(v, mask, dst)
}

// word returns the random word of the id and column in the low half of each lane.
func (p *philox) word(id, col VecVirtual) VecVirtual {
	p.row(id)
	block := p.s.vec()
	VPSRLD(U8(2), col, block)
	w := p.words(block)
	lower := p.choose(col, 0, w[0], w[1])
	return p.choose(col, 1, lower, p.choose(col, 0, w[2], w[3]))
}

// choose returns zero or one, depending on a bit of col.
func (p *philox) choose(col VecVirtual, bit uint8, zero, one VecVirtual) VecVirtual {
	t, chosen := p.s.vec(), p.s.vec()
	VPSLLD(U8(31-bit), col, t)
	if p.s.wide {
		k := K()
		VPMOVD2M(t, k)
		VPBLENDMD(one, zero, k, chosen)
	} else {
		VBLENDVPS(t, one, zero, chosen)
	}
	return chosen
}
