package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// attended is the number of values per head of a far vertex in the backward pass to sources: the
// vertex's part of the score, lse and dots. The values of all heads follow one another.
const attended = 3

// ends generates scores without their maximum, and copies lse and dots. These are in the same
// cache lines as the vertex's part of the score, so that one prefetch per line is enough.
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

// endsOfOne generates ends for one head, eight edges at a time.
func endsOfOne(s isa) {
	routine("endsOfOne"+s.name, "func(scores, lse, dots, near, far *float32, ids *uint32, slope float32, full, lanes int)",
		"Sets scores to the leaky near + far[3·id], and lse and dots to the next two elements.")
	far, ids := arg("far"), arg("ids")
	near, slope := s.loaded(Mem{Base: arg("near")}, nil), s.parameter("slope")
	to := []Register{arg("scores"), arg("lse"), arg("dots")}
	eachVector(s, func(place func(Register) Mem, mask Register) {
		id, leaky := s.vec(), s.vec()
		VMOVDQU(place(ids), id)
		VPADDD(id, id, leaky)
		VPADDD(leaky, id, id)
		for part := range attended {
			v, some := s.vec(), s.vec()
			lanesOf(mask, some)
			s.zero(v)
			VGATHERDPS(some, Mem{Base: far, Index: id, Scale: 4, Disp: 4 * part}, v)
			if part == 0 {
				bending(near, slope, v, leaky)
			}
			VMOVUPS(v, place(to[part]))
		}
	})
}

// look generates a copy of table elements by scalar loads. The processor overlaps many such
// loads, but not gathers of eight into a vector.
func look() {
	routine("look", "func(dst, ids, table *uint32, n int)",
		"Sets dst to the elements of table at n ids.")
	dst, ids, table, n := arg("dst"), arg("ids"), arg("table"), arg("n")
	one := func(disp int) {
		id := GP64()
		MOVL(Mem{Base: ids, Disp: disp}, id.As32())
		MOVL(Mem{Base: table, Index: id, Scale: 4}, id.As32())
		MOVL(id.As32(), Mem{Base: dst, Disp: disp})
	}
	unroll("eight", 8, n, one, ids, dst)
	RET()
}
