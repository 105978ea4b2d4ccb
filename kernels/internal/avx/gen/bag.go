package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// gatherValues generates a row of a sparse product whose non-zeros have values. Accumulators stay
// in registers over all non-zeros.
//
// Design note: there is one routine for all numbers of vectors, because a call through a table
// would move the caller's scratch memory from the stack to the heap.
func gatherValues(s isa) {
	routine("gatherValues"+s.name, "func(dst, x *float32, stride int, cols *uint32, vals *float32, ahead, rest, vectors, lanes int)",
		"Adds the sum over ahead+rest non-zeros of val times the tile of row col, of up to 8 vectors. The first ahead "+
			"non-zeros prefetch later rows.")
	b := bag{s: s, mask: s.mask("lanes"), dst: arg("dst")}
	b.x, b.stride, b.cols, b.vals = arg("x"), arg("stride"), arg("cols"), arg("vals")
	b.n, b.rest = arg("ahead"), arg("rest")
	tiles(8, b.tile)
}

// bag has the parameters of gatherValues in registers.
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
	acc := b.s.loadTile(b.dst, b.mask, vectors)
	aheadAndRest(name, b.n, b.rest, func(prefetch bool) { b.nonZero(acc, prefetch) })
	b.s.storeTile(acc, b.mask, b.dst)
	leave()
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
		b.s.fmaFrom(Mem{Base: p, Disp: b.s.bytes * i}, val, onlyLast(b.mask, i, len(acc)), acc[i])
	}
	ADDQ(U8(4), b.cols)
	ADDQ(U8(4), b.vals)
}

// row returns the address of x's row for a later column.
func (b *bag) row(at int) GPVirtual {
	return rowAddress(Mem{Base: b.cols, Disp: 4 * at}, b.stride, b.x)
}
