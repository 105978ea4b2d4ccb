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
// registers over all of k. With pairs, an element of a and b is a pair of numbers in bfloat16.
func tile(s isa, pairs bool, height, vectors int) {
	name, multiplyAdd := "tile", func(x, y, sum VecVirtual) { VFMADD231PS(x, y, sum) }
	if pairs {
		name, multiplyAdd = "pairs", dotPairs
	}
	routine(fmt.Sprintf("%s%sx%dx%d", name, s.name, height, vectors),
		"func(c *float32, ldc int, a *float32, rs, cs int, b *float32, ldb, k int, add bool, lanes int, next *float32, step int)",
		"Sets a block of c to, or adds to it, the sum over k of a's column times b's row. It prefetches k lines, step "+
			"bytes apart, from next on. Strides are in bytes.")
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
	next, step, c, ldc := arg("next"), arg("step"), arg("c"), Param("ldc")
	// sum generates the loop over k and the stores.
	sum := func(label string, mask Register) {
		maskOf := func(i int) Register { return onlyLast(mask, i, vectors) }
		Label(label)
		PREFETCHT1(Mem{Base: next})
		ADDQ(step, next)
		row := s.loadTile(b, mask, vectors)
		for i := range height {
			x := s.vec()
			VBROADCASTSS(element(i), x)
			for j := range row {
				multiplyAdd(row[j], x, acc[i*vectors+j])
			}
		}
		for _, base := range bases {
			ADDQ(cs, base)
		}
		ADDQ(ldb, b)
		DECQ(k)
		JNZ(LabelRef(label))
		stride := Load(ldc, GP64())
		for i := range height {
			part := acc[i*vectors : (i+1)*vectors]
			finish(s, part, func(j int) Mem { return Mem{Base: c, Disp: s.bytes * j} }, maskOf, fmt.Sprintf("%s_row%d", label, i))
			if i < height-1 {
				ADDQ(stride, c)
			}
		}
		leave()
	}
	if !s.wide { // masks in vectors are slow
		CMPQ(Load(Param("lanes"), GP64()), U8(s.bytes/4))
		JNE(LabelRef("masked"))
		sum("full", nil)
	}
	sum("masked", mask)
}

// pack generates the copy of the first lanes columns of k rows to dst, where rows are adjacent.
func pack(s isa) {
	routine("pack"+s.name, "func(dst, a *float32, stride, k, lanes int, ahead int)",
		"Copies lanes floats of each of k rows of a, stride bytes apart, and may write a vector. It prefetches the line ahead "+
			"bytes after each row.")
	mask := s.mask("lanes")
	dst, a, stride, k, ahead := arg("dst"), arg("a"), arg("stride"), arg("k"), arg("ahead")
	width := arg("lanes")
	SHLQ(U8(2), width)
	v := s.vec()
	Label("loop")
	PREFETCHT1(Mem{Base: a, Index: ahead, Scale: 1})
	s.load(Mem{Base: a}, mask, v)
	if s.wide {
		s.store(v, mask, Mem{Base: dst})
	} else { // masked stores are slow; the next row overwrites the excess
		VMOVUPS(v, Mem{Base: dst})
	}
	ADDQ(stride, a)
	ADDQ(width, dst)
	DECQ(k)
	JNZ(LabelRef("loop"))
	leave()
}
