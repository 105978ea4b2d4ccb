package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gatherValues writes a row of a sparse product whose non-zeros have values,
// with its accumulators in registers over all of them.
//
// Design note: one routine for all numbers of vectors, since a call through a
// table would move its caller's scratch memory from the stack to the heap.
func gatherValues(s isa) {
	TEXT("gatherValues"+s.name, NOSPLIT,
		"func(dst, x *float32, stride int, cols *uint32, vals *float32, ahead, rest, vectors, lanes int)")
	Doc("Adds the sum over ahead+rest non-zeros of val times the tile of row col, in up to 8 vectors; the first look ahead.")
	Pragma("noescape")
	b := bag{s: s, mask: s.mask("lanes"), dst: Load(Param("dst"), GP64())}
	b.x, b.stride = Load(Param("x"), GP64()), Load(Param("stride"), GP64())
	b.cols, b.vals = Load(Param("cols"), GP64()), Load(Param("vals"), GP64())
	b.n, b.rest = Load(Param("ahead"), GP64()), Load(Param("rest"), GP64())
	vectors := Load(Param("vectors"), GP64())
	for n := 1; n < 8; n++ {
		CMPQ(vectors, U8(n))
		JEQ(LabelRef(fmt.Sprintf("tile%d", n)))
	}
	for n := 8; n >= 1; n-- {
		b.tile(n)
	}
}

// bag is the parameters of gatherValues in registers.
type bag struct {
	s                          isa
	mask                       Register
	dst, x, stride, cols, vals Register
	n, rest                    Register
}

// tile generates the code for a number of vectors.
func (b *bag) tile(vectors int) {
	name := fmt.Sprintf("tile%d", vectors)
	Label(name)
	acc := make([]VecVirtual, vectors)
	for i := range acc {
		acc[i] = b.s.vec()
		b.s.load(Mem{Base: b.dst, Disp: b.s.bytes * i}, b.maskOf(i, vectors), acc[i])
	}
	Label(name + "_ahead")
	TESTQ(b.n, b.n)
	JZ(LabelRef(name + "_rest"))
	b.nonZero(acc, true)
	DECQ(b.n)
	JMP(LabelRef(name + "_ahead"))
	Label(name + "_rest")
	TESTQ(b.rest, b.rest)
	JZ(LabelRef(name + "_store"))
	b.nonZero(acc, false)
	DECQ(b.rest)
	JMP(LabelRef(name + "_rest"))
	Label(name + "_store")
	for i := range acc {
		b.s.store(acc[i], b.maskOf(i, vectors), Mem{Base: b.dst, Disp: b.s.bytes * i})
	}
	VZEROUPPER()
	RET()
}

func (b *bag) maskOf(i, vectors int) Register {
	if i == vectors-1 {
		return b.mask
	}
	return nil
}

// nonZero adds one non-zero.
func (b *bag) nonZero(acc []VecVirtual, prefetch bool) {
	p, val := b.row(0), b.s.vec()
	VBROADCASTSS(Mem{Base: b.vals}, val)
	if prefetch {
		q := b.row(ahead)
		for d := 0; d < len(acc)*b.s.bytes; d += 64 {
			PREFETCHT0(Mem{Base: q, Disp: d})
		}
	}
	for i := range acc {
		b.s.fmaFrom(Mem{Base: p, Disp: b.s.bytes * i}, val, b.maskOf(i, len(acc)), acc[i])
	}
	ADDQ(U8(4), b.cols)
	ADDQ(U8(4), b.vals)
}

// row returns the address of x's row for a later column.
func (b *bag) row(at int) GPVirtual {
	p := GP64()
	MOVL(Mem{Base: b.cols, Disp: 4 * at}, p.As32())
	IMULQ(b.stride, p)
	ADDQ(b.x, p)
	return p
}
