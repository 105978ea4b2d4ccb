package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dynamic generates the routines of attention whose scores depend on whole rows.
func dynamic(s isa) {
	bentDots(s)
	if !s.wide {
		tops(s)
	}
	bend(s)
}

// bending generates the leaky sum of two rows: v = max(t, slope·t) with t = v + near.
func bending(near, slope, v, leaky VecVirtual) {
	VADDPS(near, v, v)
	VMULPS(slope, v, leaky)
	VMAXPS(leaky, v, v)
}

// bentDots generates dots of a vector and leaky sums of rows, two edges at a time.
func bentDots(s isa) {
	routine("bentDots"+s.name, "func(dst *float32, step int, row, vector, x *float32, stride int, ids *uint32, n, seen, heads, full, "+
		"lanesA, lanesB, last int, slope float32)",
		"Sets heads floats of dst for each edge, step bytes apart, to the products of vector and the leaky sum of row and the row of x of "+
			"the edge's id. The last columns of a head have last bytes.")
	d := newDotting(s)
	d.vector, d.slope = arg("vector"), s.parameter("slope")
	d.blocks("two", 2)
}

// bent generates the addition of an edge's columns to its sum.
func (d *dotting) bent(row, vector VecVirtual, from Mem, mask Register, acc VecVirtual) {
	v, leaky := d.vec(), d.vec()
	d.load(from, mask, v)
	bending(row, d.slope, v, leaky)
	VFMADD231PS(vector, v, acc)
}

// bend generates the backward pass through the leaky rows. Accumulators stay in registers over
// all edges of a block. heads selects the gradient of a column. The rows were just read, so they
// are not prefetched.
func bend(s isa) {
	routine("bend"+s.name, "func(dst, along, near, vector, x *float32, stride int, ids *uint32, ds *float32, step, n int, slope float32, "+
		"vectors, lanes int, heads *uint32)",
		"Adds to dst vector times the sum over n edges of ds, times slope where the sum t of near and row id is not positive. It adds to "+
			"along, unless it is nil, the same without vector times t.")
	b := bender{isa: s, mask: s.mask("lanes"), slope: s.parameter("slope"), zero: s.vec()}
	s.zero(b.zero)
	b.x, b.stride, b.ids, b.ds, b.step = arg("x"), arg("stride"), arg("ids"), arg("ds"), arg("step")
	b.n = arg("n")
	either("along", "along", func(along bool) {
		b.along = along
		tiles(fmt.Sprintf("tile_%t_", along), s.bytes/16, b.tile) // 2 or 4 vectors
	})
}

// bender has the parameters of bend in registers.
type bender struct {
	isa
	along                       bool
	mask                        Register
	slope, zero                 VecVirtual
	x, stride, ids, ds, step, n Register
}

// tile generates the code for a number of vectors.
func (b *bender) tile(name string, vectors int) {
	mask := func(i int) Register { return onlyLast(b.mask, i, vectors) }
	var acc, bent, near, head []VecVirtual
	rows, heads := arg("near"), arg("heads")
	for i := range vectors {
		acc, bent, near, head = append(acc, b.vec()), append(bent, b.vec()), append(near, b.vec()), append(head, b.vec())
		b.isa.zero(acc[i])
		b.isa.zero(bent[i])
		b.load(Mem{Base: rows, Disp: b.bytes * i}, mask(i), near[i])
		VMOVUPS(Mem{Base: heads, Disp: b.bytes * i}, head[i])
	}
	Label(name + "_edge")
	p := rowAddress(Mem{Base: b.ids}, b.stride, b.x)
	for i := range vectors {
		t, d := b.loaded(Mem{Base: p, Disp: b.bytes * i}, mask(i)), b.vec()
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
	dst, vector := arg("dst"), arg("vector")
	for i := range vectors {
		at := Mem{Base: dst, Disp: b.bytes * i}
		v, a := b.loaded(at, mask(i)), b.loaded(Mem{Base: vector, Disp: b.bytes * i}, mask(i))
		VFMADD231PS(a, acc[i], v)
		b.store(v, mask(i), at)
	}
	if b.along {
		along := arg("along")
		for i := range vectors {
			v := b.loaded(Mem{Base: along, Disp: b.bytes * i}, mask(i))
			VADDPS(bent[i], v, v)
			b.store(v, mask(i), Mem{Base: along, Disp: b.bytes * i})
		}
	}
	leave()
}

// leaky multiplies d by the slope where t is not positive.
func (b *bender) leaky(t, d VecVirtual) {
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

// tops generates top = max(top, scores), without NaNs.
func tops(s isa) {
	routine("tops"+s.name, "func(scores, top *float32, full, lanes int)",
		"Raises the eight lanes of top to the scores, eight at a time.")
	at, topAt := arg("scores"), arg("top")
	top := s.loaded(Mem{Base: topAt}, nil)
	eachVector(s, func(place func(Register) Mem, mask Register) {
		v := s.loaded(place(at), nil)
		if mask != nil {
			VBLENDVPS(mask, v, top, v)
		}
		VMAXPS(top, v, top)
		if mask != nil {
			VMOVUPS(top, Mem{Base: topAt})
		}
	})
}
