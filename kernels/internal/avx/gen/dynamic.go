package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dynamic writes the routines of attention whose scores are made of whole rows.
func dynamic(s isa) {
	bentDots(s)
	if !s.wide {
		tops(s)
	}
	bend(s, false)
	bend(s, true)
}

// bending generates the leaky sum of two rows: v = max(t, slope·t) with t = v + near.
func bending(near, slope, v, leaky VecVirtual) {
	VADDPS(near, v, v)
	VMULPS(slope, v, leaky)
	VMAXPS(leaky, v, v)
}

// bentDots generates dots of a vector and leaky rows, two edges at a time.
func bentDots(s isa) {
	TEXT("bentDots"+s.name, NOSPLIT,
		"func(dst *float32, step int, row, vector, x *float32, stride int, ids *uint32, n, seen, heads, full, lanesA, lanesB, last int, slope float32)")
	Doc("Sets heads floats of dst, step bytes on for each edge, to the products of vector and the leaky row + row of x of the edge's id; of a head the last columns are that many bytes.")
	Pragma("noescape")
	d := dotting{isa: s, masks: []Register{s.mask("lanesA")}}
	if !s.wide {
		d.masks = append(d.masks, s.mask("lanesB"))
	}
	d.dst, d.row, d.ids = Load(Param("dst"), GP64()), Load(Param("row"), GP64()), Load(Param("ids"), GP64())
	d.vector, d.slope = Load(Param("vector"), GP64()), s.vec()
	VBROADCASTSS(place(Param("slope")), d.slope)
	Label("two")
	CMPQ(place(Param("n")), U8(2))
	JLT(LabelRef("one"))
	d.edges(2)
	JMP(LabelRef("two"))
	Label("one")
	CMPQ(place(Param("n")), U8(1))
	JLT(LabelRef("done"))
	d.edges(1)
	JMP(LabelRef("one"))
	Label("done")
	VZEROUPPER()
	RET()
}

// bent adds the columns of one edge to its sum.
func (d *dotting) bent(row, vector VecVirtual, from Mem, mask Register, acc VecVirtual) {
	v, leaky := d.vec(), d.vec()
	d.load(from, mask, v)
	bending(row, d.slope, v, leaky)
	VFMADD231PS(vector, v, acc)
}

// bend generates the backward pass through the leaky rows. Accumulators stay in registers over
// all edges of a block. heads selects the gradient of a column. The rows were just read, so they
// are not prefetched.
func bend(s isa, along bool) {
	name, params, widest := "bend", "", 2
	if along {
		name, params = "bendAlong", "along, "
	}
	if s.wide {
		widest = 4
	}
	TEXT(name+s.name, NOSPLIT,
		"func(dst, "+params+"near, vector, x *float32, stride int, ids *uint32, ds *float32, step, n int, slope float32, vectors, lanes int, heads *uint32)")
	Doc("Adds to dst vector times the sum over n edges of ds, times slope where the sum t of near and row id is not positive; to along, if any, that times t.")
	Pragma("noescape")
	b := bender{isa: s, along: along, mask: s.mask("lanes"), slope: s.vec(), zero: s.vec()}
	VBROADCASTSS(place(Param("slope")), b.slope)
	s.zero(b.zero)
	b.x, b.stride = Load(Param("x"), GP64()), Load(Param("stride"), GP64())
	b.ids, b.ds, b.step = Load(Param("ids"), GP64()), Load(Param("ds"), GP64()), Load(Param("step"), GP64())
	b.n = Load(Param("n"), GP64())
	vectors := Load(Param("vectors"), GP64())
	for n := 1; n < widest; n++ {
		CMPQ(vectors, U8(n))
		JEQ(LabelRef(fmt.Sprintf("tile%d", n)))
	}
	for n := widest; n >= 1; n-- {
		b.tile(n)
	}
}

// bender is the parameters of bend in registers.
type bender struct {
	isa
	along                       bool
	mask                        Register
	slope, zero                 VecVirtual
	x, stride, ids, ds, step, n Register
}

// tile generates the code for a number of vectors.
func (b *bender) tile(vectors int) {
	name := fmt.Sprintf("tile%d", vectors)
	Label(name)
	mask := func(i int) Register {
		if i == vectors-1 {
			return b.mask
		}
		return nil
	}
	var acc, bent, near, head []VecVirtual
	rows, heads := Load(Param("near"), GP64()), Load(Param("heads"), GP64())
	for i := range vectors {
		acc, bent, near, head = append(acc, b.vec()), append(bent, b.vec()), append(near, b.vec()), append(head, b.vec())
		b.isa.zero(acc[i])
		b.isa.zero(bent[i])
		b.load(Mem{Base: rows, Disp: b.bytes * i}, mask(i), near[i])
		VMOVUPS(Mem{Base: heads, Disp: b.bytes * i}, head[i])
	}
	Label(name + "_edge")
	p := GP64()
	MOVL(Mem{Base: b.ids}, p.As32())
	IMULQ(b.stride, p)
	ADDQ(b.x, p)
	for i := range vectors {
		t, d := b.vec(), b.vec()
		b.load(Mem{Base: p, Disp: b.bytes * i}, mask(i), t)
		VADDPS(near[i], t, t)
		VPERMPS(Mem{Base: b.ds}, head[i], d)
		b.leaky(t, d)
		VADDPS(d, acc[i], acc[i])
		if b.along {
			VFMADD231PS(d, t, bent[i])
		}
	}
	ADDQ(U8(4), b.ids)
	ADDQ(b.step, b.ds)
	DECQ(b.n)
	JNZ(LabelRef(name + "_edge"))
	dst, vector := Load(Param("dst"), GP64()), Load(Param("vector"), GP64())
	for i := range vectors {
		v, a := b.vec(), b.vec()
		b.load(Mem{Base: dst, Disp: b.bytes * i}, mask(i), v)
		b.load(Mem{Base: vector, Disp: b.bytes * i}, mask(i), a)
		VFMADD231PS(a, acc[i], v)
		b.store(v, mask(i), Mem{Base: dst, Disp: b.bytes * i})
	}
	if b.along {
		along := Load(Param("along"), GP64())
		for i := range vectors {
			v := b.vec()
			b.load(Mem{Base: along, Disp: b.bytes * i}, mask(i), v)
			VADDPS(bent[i], v, v)
			b.store(v, mask(i), Mem{Base: along, Disp: b.bytes * i})
		}
	}
	VZEROUPPER()
	RET()
}

// leaky multiplies d by the slope where t is not positive.
func (b *bender) leaky(t, d VecVirtual) {
	const greater = 0x1e // ordered, quiet
	slower := b.vec()
	VMULPS(b.slope, d, slower)
	if b.wide {
		positive := K()
		VCMPPS(U8(greater), b.zero, t, positive)
		VMOVAPS(d, positive, slower)
		VMOVAPS(slower, d)
		return
	}
	positive := b.vec()
	VCMPPS(U8(greater), b.zero, t, positive)
	VBLENDVPS(positive, d, slower, d)
}

// tops writes top = max(top, scores), NaNs left out.
func tops(s isa) {
	TEXT("tops"+s.name, NOSPLIT, "func(scores, top *float32, full, lanes int)")
	Doc("Raises top to the scores, eight after eight.")
	Pragma("noescape")
	at, topAt := Load(Param("scores"), GP64()), Load(Param("top"), GP64())
	top := s.vec()
	VMOVUPS(Mem{Base: topAt}, top)
	eachVector(s, func(place func(Register) Mem, mask Register) {
		v := s.vec()
		VMOVUPS(place(at), v)
		if mask != nil {
			VBLENDVPS(mask, v, top, v)
		}
		VMAXPS(top, v, top)
		if mask != nil {
			VMOVUPS(top, Mem{Base: topAt})
		}
	})
}
