package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// choose copies ids whose bit is set. Every id is written, and the place for the next one moves on
// after those that stay, which no branch has to foresee. Vectors would not be faster: a
// word of bits has to be looked up for each id.
func choose() {
	TEXT("choose", NOSPLIT, "func(dst, ids *uint32, n int, bits *uint32) (count int)")
	Doc("Copies those of n ids, 1 or more, whose bit is set, and returns their number.")
	Pragma("noescape")
	dst, ids := Load(Param("dst"), GP64()), Load(Param("ids"), GP64())
	n, bits := Load(Param("n"), GP64()), Load(Param("bits"), GP64())
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
	const unrolled = 4
	Label("four")
	CMPQ(n, U32(unrolled))
	JLT(LabelRef("rest"))
	for i := range unrolled {
		one(4 * i)
	}
	ADDQ(U8(4*unrolled), ids)
	SUBQ(U8(unrolled), n)
	JMP(LabelRef("four"))
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	one(0)
	ADDQ(U8(4), ids)
	DECQ(n)
	JMP(LabelRef("rest"))
	Label("done")
	Store(count, Return("count"))
	RET()
}

// below copies ascending ids up to a bound, eight at a time, and fetches what will be copied
// later: of rows that are met a part at a time no two parts lie side by side.
func below() {
	TEXT("below", NOSPLIT, "func(dst, ids *uint32, n int, bound uint32, next *uint32) (count int)")
	Doc("Copies n ascending ids as far as they are below bound, and returns their number; up to seven more are written, within n. It prefetches next.")
	Pragma("noescape")
	dst, ids, n := Load(Param("dst"), GP64()), Load(Param("ids"), GP64()), Load(Param("n"), GP64())
	next, count := Load(Param("next"), GP64()), GP64()
	const lines = 4
	for i := range lines {
		PREFETCHT0(Mem{Base: next, Disp: 64 * i})
	}
	bound := Load(Param("bound"), GP64().As32())
	bounds, spread := YMM(), XMM()
	VMOVD(bound, spread)
	VPBROADCASTD(spread, bounds)
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
