package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Comparisons, all false for a NaN.
const (
	equal   = 0x00
	greater = 0x1e
)

// edgeLoop generates a loop over the edges of a row. body receives the byte offset of the
// source's row in x. Rows of later edges are prefetched, bytes of each array.
func edgeLoop(stride Register, arrays []Register, bytes int, body func(cols, source GPVirtual)) {
	cols, n, seen := arg("cols"), arg("n"), arg("seen")
	Label("next")
	TESTQ(n, n)
	JZ(LabelRef("done"))
	TESTQ(seen, seen)
	JLE(LabelRef("near"))
	later := GP64()
	MOVL(Mem{Base: cols, Disp: 4 * ahead}, later.As32())
	IMULQ(stride, later)
	for _, a := range arrays {
		for at := 0; at < bytes; at += 64 {
			PREFETCHT0(Mem{Base: a, Index: later, Scale: 1, Disp: at})
		}
	}
	DECQ(seen)
	Label("near")
	source := GP64()
	MOVL(Mem{Base: cols}, source.As32())
	body(cols, source)
	ADDQ(U8(4), cols)
	DECQ(n)
	JMP(LabelRef("next"))
	Label("done")
}

// maxima generates the maxima of a row's vectors and the rows of its sources. With args it
// stores the source of each element; of equal elements, the source with the lowest id. The id of
// an element with -Inf is 0, so that no source has a lower id.
func maxima(s isa, args bool, vectors int) {
	name := "maxima"
	if args {
		name = "maximaOf"
	}
	routine(name+s.name+"x"+string(rune('0'+vectors)),
		"func(dst *float32, arg *uint32, x *float32, stride int, cols, ids *uint32, base uint32, n, seen, lanes int)",
		"Raises dst to the rows of x of n column ids. It records in arg, unless that is nil, the source of each element.")
	dst, x, stride := arg("dst"), arg("x"), arg("stride")
	arg, ids, base := arg("arg"), arg("ids"), GP64()
	Load(Param("base"), base.As32())
	IMULQ(stride, base)
	SUBQ(base, x)
	last := s.mask("lanes")
	mask := func(v int) Register { return onlyLast(last, v, vectors) }
	row := func(at Register, v int) Mem { return Mem{Base: at, Disp: v * s.bytes} }
	sign, best, from, id := s.vec(), make([]VecVirtual, vectors), make([]VecVirtual, vectors), make([]VecVirtual, vectors)
	if args && !s.wide {
		VPCMPEQD(sign, sign, sign)
		VPSLLD(U8(31), sign, sign)
	}
	for v := range vectors {
		best[v], from[v], id[v] = s.loaded(row(dst, v), mask(v)), s.vec(), s.vec()
		if args {
			s.load(row(arg, v), mask(v), from[v])
			s.idsOf(ids, best[v], from[v], id[v], sign)
		}
	}
	edgeLoop(stride, []Register{x}, vectors*s.bytes, func(cols, source GPVirtual) {
		col, its := s.vec(), s.vec()
		if args {
			VPBROADCASTD(Mem{Base: cols}, col)
			VPBROADCASTD(Mem{Base: ids, Index: source, Scale: 4}, its)
			if !s.wide {
				VPXOR(sign, its, its)
			}
		}
		IMULQ(stride, source)
		for v := range vectors {
			t := s.loaded(Mem{Base: x, Index: source, Scale: 1, Disp: v * s.bytes}, mask(v))
			if args {
				s.take(t, col, its, best[v], from[v], id[v])
			} else {
				VMAXPS(best[v], t, best[v])
			}
		}
	})
	for v := range vectors {
		s.store(best[v], mask(v), row(dst, v))
		if args {
			s.store(from[v], mask(v), row(arg, v))
		}
	}
	leave()
}

// idsOf looks up the ids of elements' sources. For AVX2 it flips the sign bit, because AVX2
// compares signed numbers.
func (s isa) idsOf(ids Register, best, from, id, sign VecVirtual) {
	least := s.vec()
	broadcastBits(0xff800000, least)
	s.zero(id)
	of := Mem{Base: ids, Index: from, Scale: 4}
	if s.wide {
		there := K()
		VCMPPS(U8(greater), least, best, there)
		VPGATHERDD(of, there, id)
		return
	}
	there := YMM()
	VCMPPS(U8(greater), least, best, there)
	VPGATHERDD(there, of, id)
	VPXOR(sign, id, id)
}

// take replaces elements by larger ones of t, or equal ones with a lower id.
func (s isa) take(t, col, its, best, from, id VecVirtual) {
	if s.wide {
		more, same := K(), K()
		VCMPPS(U8(greater), best, t, more)
		VCMPPS(U8(equal), best, t, same)
		VPCMPUD(U8(1), id, its, same, same)
		KORW(more, same, more)
		VMOVAPS(t, more, best)
		VMOVDQA32(col, more, from)
		VMOVDQA32(its, more, id)
		return
	}
	more, same := YMM(), YMM()
	VCMPPS(U8(equal), best, t, same)
	VPCMPGTD(its, id, more)
	VPAND(more, same, same)
	VCMPPS(U8(greater), best, t, more)
	VPOR(more, same, more)
	VBLENDVPS(more, t, best, best)
	VBLENDVPS(more, col, from, from)
	VBLENDVPS(more, its, id, id)
}

// maximaGrad generates the addition, to vectors of a row, of the elements of other rows whose source
// it is.
func maximaGrad(s isa, vectors int) {
	routine("maximaGrad"+s.name+"x"+string(rune('0'+vectors)),
		"func(dst *float32, arg *uint32, grad *float32, stride int, cols *uint32, source uint32, n, seen, lanes int)",
		"Adds to dst the elements of the rows of grad of n column ids for which arg is source.")
	dst, g, stride := arg("dst"), arg("grad"), arg("stride")
	sources, own := arg("arg"), s.vec()
	broadcastWord(Load(Param("source"), GP32()), own)
	last := s.mask("lanes")
	mask := func(v int) Register { return onlyLast(last, v, vectors) }
	sums := s.loadTile(dst, last, vectors)
	edgeLoop(stride, []Register{sources, g}, vectors*s.bytes, func(_, source GPVirtual) {
		IMULQ(stride, source)
		for v := range sums {
			from := s.loaded(Mem{Base: sources, Index: source, Scale: 1, Disp: v * s.bytes}, mask(v))
			t := s.loaded(Mem{Base: g, Index: source, Scale: 1, Disp: v * s.bytes}, mask(v))
			if s.wide {
				same := K()
				VPCMPEQD(own, from, same)
				VADDPS(t, sums[v], same, sums[v])
				continue
			}
			VPCMPEQD(own, from, from)
			VPAND(from, t, t)
			VADDPS(t, sums[v], sums[v])
		}
	})
	s.storeTile(sums, last, dst)
	leave()
}
