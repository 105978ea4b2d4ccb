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
	TEXT("ends"+s.name, NOSPLIT,
		"func(scores, lse, dots *float32, step int, near, far *float32, stride int, ids *uint32, n, heads int, slope float32)")
	Doc("Sets eight lanes of scores, step bytes on for each of n edges, to the leaky near + far[id], those of lse and dots to the heads behind; stride is of all three.")
	Pragma("noescape")
	scores, lse, dots := Load(Param("scores"), GP64()), Load(Param("lse"), GP64()), Load(Param("dots"), GP64())
	far, stride := Load(Param("far"), GP64()), Load(Param("stride"), GP64())
	ids, n, at := Load(Param("ids"), GP64()), Load(Param("n"), GP64()), GP64()
	near, slope := s.vec(), s.vec()
	VMOVUPS(Mem{Base: Load(Param("near"), GP64())}, near)
	VBROADCASTSS(place(Param("slope")), slope)
	part := Load(Param("heads"), GP64())
	SHLQ(U8(2), part)
	mask := s.mask("heads")
	XORQ(at, at)
	Label("next")
	p, q, v, leaky := GP64(), GP64(), s.vec(), s.vec()
	MOVL(Mem{Base: ids}, p.As32())
	MOVL(Mem{Base: ids, Disp: 4 * scoresAhead}, q.As32())
	IMULQ(stride, p)
	IMULQ(stride, q)
	ADDQ(far, p)
	ADDQ(far, q)
	PREFETCHT0(Mem{Base: q})
	PREFETCHT0(Mem{Base: q, Index: stride, Scale: 1, Disp: -1})
	s.load(Mem{Base: p}, mask, v)
	VADDPS(near, v, v)
	VMULPS(slope, v, leaky)
	VMAXPS(leaky, v, v)
	VMOVUPS(v, Mem{Base: scores, Index: at, Scale: 1})
	for i, to := range []Register{lse, dots} {
		v := s.vec()
		s.load(Mem{Base: p, Index: part, Scale: uint8(i + 1)}, mask, v)
		VMOVUPS(v, Mem{Base: to, Index: at, Scale: 1})
	}
	ADDQ(place(Param("step")), at)
	ADDQ(U8(4), ids)
	DECQ(n)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}

// endsOfOne generates ends for one head, eight edges at a time.
func endsOfOne(s isa) {
	TEXT("endsOfOne"+s.name, NOSPLIT,
		"func(scores, lse, dots, near, far *float32, ids *uint32, slope float32, full, lanes int)")
	Doc("Sets scores to the leaky near + far[3·id], lse and dots to the two elements behind.")
	Pragma("noescape")
	far, ids := Load(Param("far"), GP64()), Load(Param("ids"), GP64())
	near, slope := s.vec(), s.vec()
	VMOVUPS(Mem{Base: Load(Param("near"), GP64())}, near)
	VBROADCASTSS(place(Param("slope")), slope)
	to := []Register{Load(Param("scores"), GP64()), Load(Param("lse"), GP64()), Load(Param("dots"), GP64())}
	eachVector(s, func(place func(Register) Mem, mask Register) {
		id, leaky := s.vec(), s.vec()
		VMOVDQU(place(ids), id)
		VPADDD(id, id, leaky)
		VPADDD(leaky, id, id)
		for part := range attended {
			v, some := s.vec(), s.vec()
			if mask == nil {
				VPCMPEQD(some, some, some)
			} else {
				VMOVAPS(mask, some)
			}
			s.zero(v)
			VGATHERDPS(some, Mem{Base: far, Index: id, Scale: 4, Disp: 4 * part}, v)
			if part == 0 {
				VADDPS(near, v, v)
				VMULPS(slope, v, leaky)
				VMAXPS(leaky, v, v)
			}
			VMOVUPS(v, place(to[part]))
		}
	})
}

// look generates a copy of table elements by scalar loads. The processor overlaps many such
// loads, but not gathers of eight into a vector.
func look() {
	TEXT("look", NOSPLIT, "func(dst, ids, table *uint32, n int)")
	Doc("Sets dst to those of the table at n ids.")
	Pragma("noescape")
	dst, ids := Load(Param("dst"), GP64()), Load(Param("ids"), GP64())
	table, n := Load(Param("table"), GP64()), Load(Param("n"), GP64())
	one := func(i int) {
		id := GP64()
		MOVL(Mem{Base: ids, Disp: 4 * i}, id.As32())
		MOVL(Mem{Base: table, Index: id, Scale: 4}, id.As32())
		MOVL(id.As32(), Mem{Base: dst, Disp: 4 * i})
	}
	const unrolled = 8
	Label("eight")
	CMPQ(n, U32(unrolled))
	JLT(LabelRef("rest"))
	for i := range unrolled {
		one(i)
	}
	ADDQ(U8(4*unrolled), ids)
	ADDQ(U8(4*unrolled), dst)
	SUBQ(U8(unrolled), n)
	JMP(LabelRef("eight"))
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	one(0)
	ADDQ(U8(4), ids)
	ADDQ(U8(4), dst)
	DECQ(n)
	JMP(LabelRef("rest"))
	Label("done")
	RET()
}
