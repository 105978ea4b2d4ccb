package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dotsOfEight generates dots of eight heads of eight columns. The row stays in registers, and an
// edge takes one sum of four vectors over lanes instead of eight sums. It adds in the order of
// dots and starts with the same zero.
//
// For leaky rows it generates bentDots.
func dotsOfEight(s isa, evenOdd Mem, bent bool) {
	name, params, more := "dotsOfEight", "", ""
	if bent {
		name, params, more = "bentDotsOfEight", "vector, ", ", slope float32"
	}
	routine(name+s.name, "func(dst *float32, step int, row, "+params+"x *float32, stride int, ids *uint32, n, seen int"+more+")",
		"Sets eight floats of dst for each edge, step bytes apart, to the products of eight columns each of row and "+
			"the row of x of the edge's id.")
	d := dotting{isa: s}
	dst, step, ids, x, stride := arg("dst"), arg("step"), arg("ids"), arg("x"), arg("stride")
	n, seen, at := arg("n"), arg("seen"), arg("row")
	row := s.loadTile(at, nil, 4)
	var vector []VecVirtual
	slope := s.vec()
	if bent {
		MOVQ(place(Param("vector")), at)
		vector = s.loadTile(at, nil, 4)
		VBROADCASTSS(place(Param("slope")), slope)
	}
	order, zero := s.vec(), s.vec()
	VMOVDQU32(evenOdd, order)
	s.zero(zero)
	look, none := GP64(), GP64()
	XORQ(none, none)
	Label("edge")
	MOVQ(U32(4*ahead), look)
	TESTQ(seen, seen)
	CMOVQLE(none, look)
	p, q := rowPair(Mem{Base: ids}, Mem{Base: ids, Index: look, Scale: 1}, stride)
	for i := range 5 { // rows are not whole lines
		PREFETCHT0(Mem{Base: x, Index: q, Scale: 1, Disp: min(64*i, 255)})
	}
	var products []VecVirtual
	for i, r := range row {
		v, from := s.vec(), Mem{Base: x, Index: p, Scale: 1, Disp: 64 * i}
		if bent {
			VMOVUPS(from, v)
			bending(r, slope, v, s.vec())
			VMULPS(vector[i], v, v)
		} else {
			VMULPS(from, r, v)
		}
		products = append(products, v)
	}
	halves, swapped := d.transposed(products), s.vec()
	VADDPS(zero, halves, halves)
	VSHUFF32X4(U8(0b10_11_00_01), halves, halves, swapped)
	VADDPS(swapped, halves, halves)
	VPERMPS(halves, order, halves)
	VMOVUPS(halves.AsY(), Mem{Base: dst})
	ADDQ(step, dst)
	ADDQ(U8(4), ids)
	DECQ(seen)
	DECQ(n)
	JNZ(LabelRef("edge"))
	leave()
}

// evenOdd returns the positions of heads in the sums of two vectors: even heads in the first
// four floats, odd heads in the third four.
func evenOdd() Mem {
	at := GLOBL("evenOdd", RODATA|NOPTR)
	for i := range 8 {
		DATA(8*i, U32(i))
		DATA(8*i+4, U32(i+8))
	}
	return at
}
