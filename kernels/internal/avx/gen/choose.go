package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// choose generates the copy of ids whose bit is set. Every id is written, and the destination
// advances only past the chosen ones, so that there is no branch to predict. Vectors would not be
// faster, because the word of bits must be looked up for each id: see chooseAt.
func choose() {
	routine("choose", "func(dst, ids *uint32, n int, bits *uint32) (count int)",
		"Copies the ids whose bit is set, of n ids, at least 1, and returns their number.")
	dst, ids, n, bits := arg("dst"), arg("ids"), arg("n"), arg("bits")
	count := GP64()
	XORQ(count, count)
	one := func(disp int) {
		id, word := GP64(), GP64()
		MOVL(Mem{Base: ids, Disp: disp}, id.As32())
		MOVL(id.As32(), Mem{Base: dst, Index: count, Scale: 4})
		MOVL(id.As32(), word.As32())
		SHRL(U8(5), word.As32())
		MOVL(Mem{Base: bits, Index: word, Scale: 4}, word.As32())
		SHRXL(id.As32(), word.As32(), word.As32())
		ANDL(U32(1), word.As32())
		ADDQ(word, count)
	}
	unroll("four", 4, n, one, ids)
	Store(count, Return("count"))
	RET()
}

// chooseAt generates choose for bits in the order of the ids. Masked lanes beyond the last id are not read.
func chooseAt(s isa) {
	routine("chooseAt"+s.name, "func(dst, ids *uint32, n int, bits *uint8, shift int) (count int)",
		"Copies those of n ids, at least 1, whose bit is set, and returns their number. The first bit is bit shift of "+
			"bits, at most 7. It reads four bytes of bits at a time, and writes whole vectors.")
	dst, ids, n, bits, shift := arg("dst"), arg("ids"), arg("n"), arg("bits"), arg("shift")
	places, count, most := compressions(s), GP64(), s.bytes/4
	XORQ(count, count)
	Label("vector")
	lanes, b, keep, v := GP64(), GP64(), K(), s.vec()
	MOVQ(U32(most), lanes)
	CMPQ(n, lanes)
	CMOVQLT(n, lanes)
	MOVL(Mem{Base: bits}, b.As32())
	SHRXL(shift.As32(), b.As32(), b.As32())
	BZHIL(lanes.As32(), b.As32(), b.As32())
	if s.wide {
		KMOVW(b.As32(), keep)
		s.load(Mem{Base: ids}, keep, v)
	} else { // its masks are slow
		CMPQ(n, U32(most))
		JLT(LabelRef("part"))
		s.load(Mem{Base: ids}, nil, v)
		JMP(LabelRef("loaded"))
		Label("part")
		s.load(Mem{Base: ids}, s.maskOf(lanes), v)
		Label("loaded")
	}
	chosen := s.compress(keep, b, places, []VecVirtual{v})
	s.store(v, nil, Mem{Base: dst, Index: count, Scale: 4})
	ADDQ(chosen, count)
	ADDQ(U8(s.bytes), ids)
	ADDQ(U8(most/8), bits)
	SUBQ(U8(most), n)
	JGT(LabelRef("vector"))
	Store(count, Return("count"))
	leave()
}

// below generates the copy of ascending ids up to a bound, eight at a time. It prefetches what will
// be copied later, because parts of rows that are read in turn are not adjacent.
func below() {
	routine("below", "func(dst, ids *uint32, n int, bound uint32, next *uint32) (count int)",
		"Copies the ids below bound of n ascending ids, and returns their number. Up to seven more are written, at most "+
			"n in all. It prefetches next.")
	dst, ids, n := arg("dst"), arg("ids"), arg("n")
	next, count := arg("next"), GP64()
	const lines = 4
	for i := range lines {
		PREFETCHT0(Mem{Base: next, Disp: 64 * i})
	}
	bound := Load(Param("bound"), GP64().As32())
	bounds := YMM()
	broadcastWord(bound, bounds)
	XORQ(count, count)
	Label("eight")
	CMPQ(n, U32(8))
	JLT(LabelRef("rest"))
	v, larger, beyond := YMM(), YMM(), GP64()
	VMOVDQU(Mem{Base: ids, Index: count, Scale: 4}, v)
	VMOVDQU(v, Mem{Base: dst, Index: count, Scale: 4})
	VPMAXUD(v, bounds, larger)
	VPCMPEQD(v, larger, larger)
	VMOVMSKPS(larger, beyond.As32())
	TESTL(beyond.As32(), beyond.As32())
	JNZ(LabelRef("found"))
	ADDQ(U8(8), count)
	SUBQ(U8(8), n)
	JMP(LabelRef("eight"))
	Label("found")
	TZCNTL(beyond.As32(), beyond.As32())
	ADDQ(beyond, count)
	JMP(LabelRef("done"))
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	id := GP64()
	MOVL(Mem{Base: ids, Index: count, Scale: 4}, id.As32())
	CMPL(id.As32(), bound)
	JCC(LabelRef("done"))
	MOVL(id.As32(), Mem{Base: dst, Index: count, Scale: 4})
	INCQ(count)
	DECQ(n)
	JMP(LabelRef("rest"))
	Label("done")
	VZEROUPPER()
	Store(count, Return("count"))
	RET()
}
