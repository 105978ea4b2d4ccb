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

// tile writes a block of a dense product: height rows of one or two vectors,
// accumulated in registers over all of k.
func tile(s isa, height, vectors int) {
	TEXT(fmt.Sprintf("tile%sx%dx%d", s.name, height, vectors), NOSPLIT,
		"func(c *float32, ldc int, a *float32, rs, cs int, b *float32, ldb, k int, add bool, lanes int, next *float32)")
	Doc("Sets or adds to a block of c the sum over k of a's column times b's row, and prefetches k lines from next on; strides are in bytes.")
	Pragma("noescape")
	mask := s.mask("lanes")
	rs, cs := Load(Param("rs"), GP64()), Load(Param("cs"), GP64())
	b, ldb, k := Load(Param("b"), GP64()), Load(Param("ldb"), GP64()), Load(Param("k"), GP64())

	// Three rows share a base: an index can be scaled by 1 and 2.
	bases := []GPVirtual{Load(Param("a"), GP64()).(GPVirtual)}
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
	maskOf := func(i int) Register {
		if i%vectors == vectors-1 {
			return mask
		}
		return nil
	}
	next := Load(Param("next"), GP64())
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

	c, ldc := Load(Param("c"), GP64()), Load(Param("ldc"), GP64())
	for i := range height {
		part := acc[i*vectors : (i+1)*vectors]
		finish(s, part, func(j int) Mem { return Mem{Base: c, Disp: s.bytes * j} }, maskOf, fmt.Sprintf("row%d", i))
		if i < height-1 {
			ADDQ(ldc, c)
		}
	}
	VZEROUPPER()
	RET()
}

// pack copies the first lanes columns of k rows to dst, where rows follow each
// other without a gap.
func pack(s isa) {
	TEXT("pack"+s.name, NOSPLIT, "func(dst, a *float32, stride, k, lanes int, ahead int)")
	Doc("Copies lanes floats of each of k rows of a, stride bytes apart, and prefetches what lies ahead bytes behind each.")
	Pragma("noescape")
	mask := s.mask("lanes")
	dst, a := Load(Param("dst"), GP64()), Load(Param("a"), GP64())
	stride, k, ahead := Load(Param("stride"), GP64()), Load(Param("k"), GP64()), Load(Param("ahead"), GP64())
	width := Load(Param("lanes"), GP64()).(GPVirtual)
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
	VZEROUPPER()
	RET()
}
