package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A packed row begins with a line of the cache: a bit for each column, in words
// of 16, rounded up to 32 bits; then the values of the columns whose bit is set.
// AVX-512 alone has the instructions.
//
// Design note: compress and expand work in place, on a register that has just
// been loaded. On Zen 4 an expand waits for the former value of a destination
// that it zeroes, 5 cycles instead of 2; a compress to memory is microcode.

// header is the bytes of a packed row's bits, for a number of whole words of 16.
func header(words int) int { return (words + 1) / 2 * 4 }

// packRows writes rows of whole vectors, the last one masked, without zeros. A
// NaN is none, and -0 is one.
func packRows(s isa) {
	TEXT("packRows"+s.name, NOSPLIT,
		"func(dst *float32, start *uint32, x *float32, rows, full, lanes, header, at, end int) (packed int)")
	Doc("Packs rows of x to the lines of dst from at on, and says in start where each begins; it stops where a row could reach past end.")
	Pragma("noescape")
	mask := s.mask("lanes")
	dst, start, x := Load(Param("dst"), GP64()), Load(Param("start"), GP64()), Load(Param("x"), GP64())
	at, row := Load(Param("at"), GP64()), GP64()
	zero := s.vec()
	s.zero(zero)
	XORQ(row, row)
	Label("row")
	CMPQ(row, place(Param("rows")))
	JGE(LabelRef("done"))
	CMPQ(at, place(Param("end")))
	JGT(LabelRef("done"))
	MOVL(at.(GPVirtual).As32(), Mem{Base: start, Index: row, Scale: 4})
	bits, to := GP64(), GP64()
	MOVQ(at, bits)
	SHLQ(U8(6), bits)
	ADDQ(dst, bits)
	MOVQ(bits, to)
	ADDQ(place(Param("header")), to)
	full := Load(Param("full"), GP64())
	vector := func(mask Register) {
		v, some, n := s.vec(), K(), GP64()
		s.load(Mem{Base: x}, mask, v)
		VCMPPS(U8(4), zero, v, some) // not equal, or unordered
		KMOVW(some, n.As32())
		MOVW(n.As16(), Mem{Base: bits})
		VCOMPRESSPS_Z(v, some, v)
		VMOVUPS(v, Mem{Base: to})
		POPCNTL(n.As32(), n.As32())
		LEAQ(Mem{Base: to, Index: n, Scale: 4}, to)
		ADDQ(U8(2), bits)
	}
	Label("vector")
	TESTQ(full, full)
	JZ(LabelRef("last"))
	vector(nil)
	ADDQ(U8(s.bytes), x)
	DECQ(full)
	JMP(LabelRef("vector"))
	Label("last")
	vector(mask)
	lanes := Load(Param("lanes"), GP64())
	LEAQ(Mem{Base: x, Index: lanes, Scale: 4}, x)
	SUBQ(dst, to)
	ADDQ(U8(63), to)
	SHRQ(U8(6), to)
	MOVQ(to, at)
	INCQ(row)
	JMP(LabelRef("row"))
	Label("done")
	Store(row, Return("packed"))
	VZEROUPPER()
	RET()
}

// gatherPacked is gather of packed rows of so many vectors.
func gatherPacked(s isa, vectors int) {
	g := &gathering{isa: s, packed: true, bytes: s.bytes}
	TEXT(fmt.Sprintf("gatherPacked%sx%d", s.name, vectors), NOSPLIT,
		"func(dst *float32, dstStride int, x *float32, start *uint32, cols *uint32, base uint32, begin, end *int64, "+
			"rows, seen int, colScale, rowScale *float32, self int, add bool, lanes int)")
	Doc("Sets or adds to each row r of dst rowScale[r] times the sum over cols[begin[r]:end[r]], and self+r unless self is negative, of colScale[col] times the packed row col-base.")
	Pragma("noescape")
	g.last = s.mask("lanes")
	g.x, g.start = Load(Param("x"), GP64()), Load(Param("start"), GP64())
	g.shared()
	g.run(vectors)
}

// packedLines is how many lines of a packed row are prefetched: as many as a row
// has of which a quarter is there.
func packedLines(vectors int) int { return (header(vectors) + 16*vectors + 63) / 64 }

// lineOf turns a column id into the place of its packed row.
func (g *gathering) lineOf(p Register) {
	SUBL(g.base, p.(GPVirtual).As32())
	MOVL(Mem{Base: g.start, Index: p, Scale: 4}, p.(GPVirtual).As32())
	SHLQ(U8(6), p)
	ADDQ(g.x, p)
}

// unpack adds the packed row at p.
func (g *gathering) unpack(p Register, scale VecVirtual) {
	from := GP64()
	LEAQ(Mem{Base: p, Disp: header(len(g.acc))}, from)
	for i, acc := range g.acc {
		n, some, v := GP32(), K(), g.vec()
		MOVWLZX(Mem{Base: p, Disp: 2 * i}, n)
		KMOVW(n, some)
		VMOVUPS(Mem{Base: from}, v)
		VEXPANDPS_Z(v, some, v)
		if i < len(g.acc)-1 {
			POPCNTL(n, n)
			LEAQ(Mem{Base: from, Index: n.As64(), Scale: 4}, from)
		}
		if scale == nil {
			VADDPS(v, acc, acc)
		} else {
			VFMADD231PS(v, scale, acc)
		}
	}
}
