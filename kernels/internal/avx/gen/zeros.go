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

// skipping is the common part of both products: the sum over the set bits of words, lowest first,
// of an element of one operand times a row of the other.
type skipping struct {
	isa
	acc  []VecVirtual
	last Register
}

func (g *skipping) mask(i int) Register { return onlyLast(g.last, i, len(g.acc)) }

// add generates, for each set bit N of word, the addition of the element at x plus N times step
// bytes, times the row at y plus N times stride bytes.
func (g *skipping) add(label string, word, x Register, step func(n Register) Mem, y, stride Register) {
	Label(label)
	TESTQ(word, word)
	JZ(LabelRef(label + "_end"))
	n, v := GP64(), g.vec()
	TZCNTQ(word, n)
	BLSRQ(word, word)
	VBROADCASTSS(step(n), v)
	IMULQ(stride, n)
	for i, acc := range g.acc {
		g.fmaFrom(Mem{Base: y, Index: n, Scale: 1, Disp: g.bytes * i}, v, g.mask(i), acc)
	}
	JMP(LabelRef(label))
	Label(label + "_end")
}

func newSkipping(s isa, vectors int) *skipping {
	g := &skipping{isa: s, last: s.mask("lanes")}
	for range vectors {
		g.acc = append(g.acc, s.vec())
	}
	return g
}

// sparseRows generates the product of rows of a and N vectors of b.
func sparseRows(s isa, vectors int) {
	routine(fmt.Sprintf("sparseRows%sx%d", s.name, vectors),
		"func(c *float32, ldc int, a *float32, lda int, bits *uint64, words int, b *float32, ldb, rows int, add bool, lanes, ahead int)",
		"Sets rows of c to, or adds to them, rows of a times b, for the elements of a whose bit is set. It prefetches the elements of a "+
			"ahead bytes later. Strides are in bytes.")
	g := newSkipping(s, vectors)
	c, bits, ldb, rows := arg("c"), arg("bits"), arg("ldb"), arg("rows")
	Label("row")
	a, b := arg("a"), arg("b")
	words, ahead := arg("words"), GP64()
	for _, acc := range g.acc {
		s.zero(acc)
	}
	Label("word")
	word := GP64()
	MOVQ(Mem{Base: bits}, word)
	MOVQ(a, ahead)
	ADDQ(place(Param("ahead")), ahead)
	for line := range 4 {
		PREFETCHT1(Mem{Base: ahead, Disp: 64 * line})
	}
	g.add("bit", word, a, func(n Register) Mem { return Mem{Base: a, Index: n, Scale: 4} }, b, ldb)
	ADDQ(U8(8), bits)
	ADDQ(U32(256), a)
	next := GP64()
	MOVQ(ldb, next)
	SHLQ(U8(6), next)
	ADDQ(next, b)
	DECQ(words)
	JNZ(LabelRef("word"))
	finish(s, g.acc, func(i int) Mem { return Mem{Base: c, Disp: s.bytes * i} }, g.mask, "end")
	ADDQ(place(Param("ldc")), c)
	MOVQ(place(Param("a")), a)
	ADDQ(place(Param("lda")), a)
	MOVQ(a, place(Param("a")))
	DECQ(rows)
	JNZ(LabelRef("row"))
	leave()
}

// sparseColumns generates the product of 64 transposed rows of a and the rows of b.
func sparseColumns(s isa, vectors int) {
	routine(fmt.Sprintf("sparseColumns%sx%d", s.name, vectors),
		"func(c *float32, ldc int, a *float32, lda int, bits *uint64, b *float32, ldb, cols int, add bool, lanes int)",
		"Sets or continues sums in rows of c: columns of 64 rows of a times the same rows of b, for the elements of a whose bit is set. "+
			"It prefetches the next 64 rows. Strides are in bytes.")
	g := newSkipping(s, vectors)
	c, bits, a, b, lda, ldb := arg("c"), arg("bits"), arg("a"), arg("b"), arg("lda"), arg("ldb")
	cols := arg("cols")
	nextA, nextB := GP64(), GP64()
	for _, p := range [][3]Register{{a, lda, nextA}, {b, ldb, nextB}} {
		MOVQ(p[1], p[2])
		SHLQ(U8(6), p[2])
		ADDQ(p[0], p[2])
	}
	Label("column")
	prefetch(nextA, 256)
	prefetch(nextB, s.bytes*vectors)
	ADDQ(lda, nextA)
	ADDQ(ldb, nextB)
	g.begin(c)
	word := GP64()
	MOVQ(Mem{Base: bits}, word)
	g.add("bit", word, a, func(n Register) Mem {
		m := GP64()
		MOVQ(n, m)
		IMULQ(lda, m)
		return Mem{Base: a, Index: m, Scale: 1}
	}, b, ldb)
	s.storeTile(g.acc, g.last, c)
	ADDQ(place(Param("ldc")), c)
	ADDQ(U8(8), bits)
	ADDQ(U8(4), a)
	DECQ(cols)
	JNZ(LabelRef("column"))
	leave()
}

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

// prefetch generates prefetches of the cache lines of N bytes.
func prefetch(p Register, bytes int) {
	for line := 0; line < bytes; line += 64 {
		PREFETCHT1(Mem{Base: p, Disp: line})
	}
}
