package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// finish stores accumulators, after adding the stored values if "add" is set.
func finish(s isa, acc []VecVirtual, place func(i int) Mem, maskOf func(i int) Register, label string) {
	add := Load(Param("add"), GP8())
	TESTB(add, add)
	JZ(LabelRef(label + "_store"))
	for i := range acc {
		s.addFrom(place(i), maskOf(i), acc[i])
	}
	Label(label + "_store")
	for i := range acc {
		s.store(acc[i], maskOf(i), place(i))
	}
}

// tile generates a block of a dense product: height rows of one or two vectors, accumulated in
// registers over all of k.
func tile(s isa, height, vectors int) {
	routine(fmt.Sprintf("tile%sx%dx%d", s.name, height, vectors),
		"func(c *float32, ldc int, a *float32, rs, cs int, b *float32, ldb, k int, add bool, lanes int, next *float32)",
		"Sets a block of c to, or adds to it, the sum over k of a's column times b's row. It prefetches k lines from "+
			"next on. Strides are in bytes.")
	mask := s.mask("lanes")
	rs, cs, b, ldb, k := arg("rs"), arg("cs"), arg("b"), arg("ldb"), arg("k")

	// Three rows share a base, because an index can be scaled by 1 and 2.
	bases := []GPVirtual{arg("a")}
	for len(bases) < (height+2)/3 {
		next := GP64()
		last := bases[len(bases)-1]
		LEAQ(Mem{Base: last, Index: rs, Scale: 2}, next)
		ADDQ(rs, next)
		bases = append(bases, next)
	}
	element := func(i int) Mem {
		m := Mem{Base: bases[i/3]}
		if i%3 > 0 {
			m.Index, m.Scale = rs, uint8(i%3)
		}
		return m
	}
	acc := make([]VecVirtual, height*vectors)
	for i := range acc {
		acc[i] = s.vec()
		s.zero(acc[i])
	}
	maskOf := func(i int) Register { return onlyLast(mask, i, vectors) }
	next := arg("next")
	Label("loop")
	PREFETCHT1(Mem{Base: next})
	ADDQ(U8(64), next)
	row := make([]VecVirtual, vectors)
	for j := range row {
		row[j] = s.vec()
		s.load(Mem{Base: b, Disp: s.bytes * j}, maskOf(j), row[j])
	}
	for i := range height {
		x := s.vec()
		VBROADCASTSS(element(i), x)
		for j := range row {
			VFMADD231PS(row[j], x, acc[i*vectors+j])
		}
	}
	for _, base := range bases {
		ADDQ(cs, base)
	}
	ADDQ(ldb, b)
	DECQ(k)
	JNZ(LabelRef("loop"))

	c, ldc := arg("c"), arg("ldc")
	for i := range height {
		part := acc[i*vectors : (i+1)*vectors]
		finish(s, part, func(j int) Mem { return Mem{Base: c, Disp: s.bytes * j} }, maskOf, fmt.Sprintf("row%d", i))
		if i < height-1 {
			ADDQ(ldc, c)
		}
	}
	leave()
}

// pack generates the copy of the first lanes columns of k rows to dst, where rows are adjacent.
func pack(s isa) {
	routine("pack"+s.name, "func(dst, a *float32, stride, k, lanes int, ahead int)",
		"Copies lanes floats of each of k rows of a, stride bytes apart. It prefetches the line ahead bytes after each row.")
	mask := s.mask("lanes")
	dst, a, stride, k, ahead := arg("dst"), arg("a"), arg("stride"), arg("k"), arg("ahead")
	width := arg("lanes")
	SHLQ(U8(2), width)
	v := s.vec()
	Label("loop")
	PREFETCHT1(Mem{Base: a, Index: ahead, Scale: 1})
	s.load(Mem{Base: a}, mask, v)
	s.store(v, mask, Mem{Base: dst})
	ADDQ(stride, a)
	ADDQ(width, dst)
	DECQ(k)
	JNZ(LabelRef("loop"))
	leave()
}
