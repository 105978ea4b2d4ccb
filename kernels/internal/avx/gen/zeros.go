package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A product that skips the zeros of one operand reads a bit for each of its elements, 64 at a
// time, and adds a row of the other operand for each set bit. The row is read from the first-level
// cache and takes as much work as in a product of tiles, which multiplies by zeros too.

// nonzeros generates one bit for each element of rows of x, in words of 64 bits. Bits after the
// last element must already be zero.
func nonzeros(s isa) {
	routine("nonzeros"+s.name, "func(bits *uint64, stride int, x *float32, ldx, rows, full, lanes int)",
		"Sets the bits of the non-zeros of rows of x, full vectors and one of lanes elements. Strides are in bytes.")
	mask := s.mask("lanes")
	bits, x, rows := arg("bits"), arg("x"), arg("rows")
	zero := s.vec()
	s.zero(zero)
	Label("row")
	to, from := GP64(), GP64()
	MOVQ(bits, to)
	MOVQ(x, from)
	full := arg("full")
	vector := func(mask Register) {
		v := s.loaded(Mem{Base: from}, mask)
		s.storeNonzeros(v, zero, Mem{Base: to})
	}
	countdown("vector", "last", full, func() {
		vector(nil)
		ADDQ(U8(s.bytes), from)
		ADDQ(U8(s.bytes/32), to)
	})
	vector(mask)
	ADDQ(place(Param("stride")), bits)
	ADDQ(place(Param("ldx")), x)
	DECQ(rows)
	JNZ(LabelRef("row"))
	leave()
}

// storeNonzeros generates the store of a bit per lane, which is also set for a NaN.
func (s isa) storeNonzeros(v, zero VecVirtual, m Mem) {
	n := GP32()
	const unequal = 4
	if s.wide {
		k := K()
		VCMPPS(U8(unequal), zero, v, k)
		KMOVW(k, n)
		MOVW(n.As16(), m)
		return
	}
	VCMPPS(U8(unequal), zero, v, v)
	VMOVMSKPS(v, n)
	MOVB(n.As8(), m)
}

// sparse generates the product of rows of elements and N vectors of b: the sum over the set bits of a word,
// lowest first, of an element times a row of b.
func sparse(s isa, vectors int) {
	routine(fmt.Sprintf("sparse%sx%d", s.name, vectors),
		"func(c *float32, ldc int, a *float32, rowStride, colStride int, bits *uint64, bitStride int, b *float32, ldb, "+
			"rows int, add bool, lanes int)",
		"Sets or continues sums in rows of c: the elements of a row of a whose bit is set, of 64, times rows of b. It prefetches rows of "+
			"a 64 rows later. Strides are in bytes.")
	g := &skipping{isa: s, last: s.mask("lanes")}
	for range vectors {
		g.acc = append(g.acc, s.vec())
	}
	c, bits, a, b, ldb, rows := arg("c"), arg("bits"), arg("a"), arg("b"), arg("ldb"), arg("rows")
	colStride, lda := arg("colStride"), arg("rowStride")
	CMPQ(lda, colStride)
	CMOVQLT(colStride, lda) // of two rows in memory
	later := GP64()
	MOVQ(lda, later)
	SHLQ(U8(6), later)
	ADDQ(a, later)
	Label("row")
	for line := range 4 {
		PREFETCHT1(Mem{Base: later, Disp: 64 * line})
	}
	ADDQ(lda, later)
	g.begin(c)
	word := GP64()
	MOVQ(Mem{Base: bits}, word)
	TESTQ(word, word)
	JZ(LabelRef("end"))
	Label("bit")
	n, at, v := GP64(), GP64(), g.vec()
	TZCNTQ(word, n)
	MOVQ(n, at)
	IMULQ(colStride, at)
	VBROADCASTSS(Mem{Base: a, Index: at, Scale: 1}, v)
	IMULQ(ldb, n)
	for i, acc := range g.acc {
		g.fmaFrom(Mem{Base: b, Index: n, Scale: 1, Disp: g.bytes * i}, v, g.mask(i), acc)
	}
	BLSRQ(word, word)
	JNZ(LabelRef("bit"))
	Label("end")
	s.storeTile(g.acc, g.last, c)
	ADDQ(place(Param("ldc")), c)
	ADDQ(place(Param("bitStride")), bits)
	ADDQ(place(Param("rowStride")), a)
	DECQ(rows)
	JNZ(LabelRef("row"))
	leave()
}

// skipping is the state of sparse.
type skipping struct {
	isa
	acc  []VecVirtual
	last Register
}

func (g *skipping) mask(i int) Register { return onlyLast(g.last, i, len(g.acc)) }

// begin sets the accumulators to zero or, if "add" is set, to the values at c.
func (g *skipping) begin(c Register) {
	add := Load(Param("add"), GP8())
	TESTB(add, add)
	JZ(LabelRef("zero"))
	for i, acc := range g.acc {
		g.load(Mem{Base: c, Disp: g.bytes * i}, g.mask(i), acc)
	}
	JMP(LabelRef("begun"))
	Label("zero")
	for _, acc := range g.acc {
		g.zero(acc)
	}
	Label("begun")
}
