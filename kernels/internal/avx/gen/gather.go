package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ahead is how many edges before its use a row is prefetched; package avx has
// it too.
const ahead = 8

// gather writes a tile of one row of a sparse product, up to 8 vectors wide,
// with its accumulators in registers over all edges.
//
// With half, rows are bfloat16, which is the upper half of a float32; the last
// vector of a row is not masked then, and reads what follows the row.
func gather(s isa, half bool, vectors int) {
	name, bytes, elem := "gather", s.bytes, "float32"
	if half {
		name, bytes, elem = "gatherHalf", s.bytes/2, "uint16"
	}
	TEXT(fmt.Sprintf("%s%sx%d", name, s.name, vectors), NOSPLIT,
		"func(dst *float32, x *"+elem+", stride int, cols *uint32, base uint32, ahead, rest int, colScale *float32, rowScale float32, self *"+elem+", selfScale float32, add bool, lanes int)")
	Doc("Sets or adds rowScale times the sum over ahead+rest edges of colScale[col] times the tile of row col-base, and selfScale times self unless that is nil; the first edges look ahead.")
	Pragma("noescape")
	mask := s.mask("lanes")
	x, stride := Load(Param("x"), GP64()), Load(Param("stride"), GP64())
	cols, base := Load(Param("cols"), GP64()), Load(Param("base"), GP32())
	n, rest := Load(Param("ahead"), GP64()), Load(Param("rest"), GP64())
	colScale := Load(Param("colScale"), GP64())

	acc := make([]VecVirtual, vectors)
	for i := range acc {
		acc[i] = s.vec()
		s.zero(acc[i])
	}
	maskOf := func(i int) Register {
		if i == vectors-1 {
			return mask
		}
		return nil
	}
	// accumulate adds a vector of a row, times scale unless that is nil.
	accumulate := func(m Mem, scale VecVirtual, i int) {
		switch {
		case half:
			v := s.vec()
			VPMOVZXWD(m, v)
			VPSLLD(U8(16), v, v)
			if scale != nil {
				VFMADD231PS(v, scale, acc[i])
			} else {
				VADDPS(v, acc[i], acc[i])
			}
		case scale != nil:
			s.fmaFrom(m, scale, maskOf(i), acc[i])
		default:
			s.addFrom(m, maskOf(i), acc[i])
		}
	}
	self := Load(Param("self"), GP64())
	TESTQ(self, self)
	JZ(LabelRef("edges"))
	selfScale := s.vec()
	VBROADCASTSS(place(Param("selfScale")), selfScale)
	for i := range acc {
		accumulate(Mem{Base: self, Disp: bytes * i}, selfScale, i)
	}
	Label("edges")
	row := func(at int) GPVirtual {
		p := GP64()
		MOVL(Mem{Base: cols, Disp: 4 * at}, p.As32())
		return p
	}
	address := func(p GPVirtual) {
		SUBL(base, p.As32())
		IMULQ(stride, p)
		ADDQ(x, p)
	}
	edge := func(scaled, prefetch bool) {
		p := row(0)
		scale := s.vec()
		if scaled {
			VBROADCASTSS(Mem{Base: colScale, Index: p, Scale: 4}, scale)
		}
		address(p)
		if prefetch {
			q := row(ahead)
			address(q)
			for d := 0; d < vectors*bytes; d += 64 {
				PREFETCHT0(Mem{Base: q, Disp: d})
			}
		}
		for i := range acc {
			m := Mem{Base: p, Disp: bytes * i}
			if scaled {
				accumulate(m, scale, i)
			} else {
				accumulate(m, nil, i)
			}
		}
		ADDQ(U8(4), cols)
	}
	loop := func(name string, scaled bool) {
		Label(name + "_ahead")
		TESTQ(n, n)
		JZ(LabelRef(name + "_rest"))
		edge(scaled, true)
		DECQ(n)
		JMP(LabelRef(name + "_ahead"))
		Label(name + "_rest")
		TESTQ(rest, rest)
		JZ(LabelRef("scale"))
		edge(scaled, false)
		DECQ(rest)
		JMP(LabelRef(name + "_rest"))
	}
	TESTQ(colScale, colScale)
	JZ(LabelRef("plain_ahead"))
	loop("scaled", true)
	loop("plain", false)

	Label("scale")
	rowScale := s.vec()
	VBROADCASTSS(place(Param("rowScale")), rowScale)
	for i := range acc {
		VMULPS(rowScale, acc[i], acc[i])
	}
	dst := Load(Param("dst"), GP64())
	finish(s, acc, func(i int) Mem { return Mem{Base: dst, Disp: s.bytes * i} }, maskOf, "done")
	Label("done")
	VZEROUPPER()
	RET()
}
