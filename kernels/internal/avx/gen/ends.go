package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ends generates scores without their maximum, and copies lse and dots. In the backward pass to sources a far vertex has,
// for all heads, its part of the score, then lse, then dots. They are in the same cache lines, so that one prefetch per
// line is enough.
func ends(s isa) {
	routine("ends"+s.name,
		"func(scores, lse, dots *float32, step int, near, far *float32, stride int, ids *uint32, n, heads int, slope float32)",
		"Sets eight lanes of scores for each of n edges, step bytes apart, to the leaky near + far[id], and eight lanes of lse and dots "+
			"to the next heads of far. stride is the distance of two ids, in bytes.")
	scores, lse, dots, far, stride := arg("scores"), arg("lse"), arg("dots"), arg("far"), arg("stride")
	ids, n, at := arg("ids"), arg("n"), GP64()
	near, slope := s.loaded(Mem{Base: arg("near")}, nil), s.parameter("slope")
	part := arg("heads")
	SHLQ(U8(2), part)
	mask := s.mask("heads")
	XORQ(at, at)
	Label("next")
	p, q := rowPair(Mem{Base: ids}, Mem{Base: ids, Disp: 4 * scoresAhead}, stride)
	v, leaky := s.vec(), s.vec()
	ADDQ(far, p)
	ADDQ(far, q)
	PREFETCHT0(Mem{Base: q})
	PREFETCHT0(Mem{Base: q, Index: stride, Scale: 1, Disp: -1})
	s.load(Mem{Base: p}, mask, v)
	bending(near, slope, v, leaky)
	VMOVUPS(v, Mem{Base: scores, Index: at, Scale: 1})
	for i, to := range []Register{lse, dots} {
		v := s.loaded(Mem{Base: p, Index: part, Scale: uint8(i + 1)}, mask)
		VMOVUPS(v, Mem{Base: to, Index: at, Scale: 1})
	}
	ADDQ(place(Param("step")), at)
	ADDQ(U8(4), ids)
	DECQ(n)
	JNZ(LabelRef("next"))
	leave()
}

// endsOfOne generates ends for one head: a copy of the values of far vertices, and scores from it, eight edges at a
// time.
func endsOfOne(s isa) {
	routine("endsOfOne"+s.name, "func(scores, lse, dots, near, far *float32, ids *uint32, slope float32, full, lanes int)",
		"Sets scores to the leaky near + far[3·id], and lse and dots to the next two elements.")
	far, scores := arg("far"), arg("scores")
	lse, dots := arg("lse"), arg("dots")
	SUBQ(scores, lse)
	SUBQ(scores, dots)
	pickFar(scores, func(id, to Register, disp int) {
		LEAQ(Mem{Base: id, Index: id, Scale: 2}, id)
		copyWord(Mem{Base: far, Index: id, Scale: 4}, Mem{Base: to, Disp: disp})
		copyWord(Mem{Base: far, Index: id, Scale: 4, Disp: 4}, Mem{Base: to, Index: lse, Scale: 1, Disp: disp})
		copyWord(Mem{Base: far, Index: id, Scale: 4, Disp: 8}, Mem{Base: to, Index: dots, Scale: 1, Disp: disp})
	})
	near, slope := s.loaded(Mem{Base: arg("near")}, nil), s.parameter("slope")
	eachVector(s, func(place func(Register) Mem, mask Register) {
		v, leaky := s.loaded(place(scores), nil), s.vec()
		bending(near, slope, v, leaky)
		VMOVUPS(v, place(scores))
	})
}

// look generates a copy of table elements.
func look() {
	routine("look", "func(dst, ids, table *uint32, n int)",
		"Sets dst to the elements of table at n ids.")
	dst, ids, table, n := arg("dst"), arg("ids"), arg("table"), arg("n")
	unroll("eight", 8, n, func(disp int) {
		id := GP64()
		MOVL(Mem{Base: ids, Disp: disp}, id.As32())
		copyWord(Mem{Base: table, Index: id, Scale: 4}, Mem{Base: dst, Disp: disp})
	}, ids, dst)
	RET()
}
