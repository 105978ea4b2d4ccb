package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dots generates the products of one row with the rows of edges, head by head, four edges at a
// time. Sixteen columns are a vector, or for AVX2 two vectors with separate sums, so that both sets
// add in the same order.
func dots(s isa) {
	routine("dots"+s.name,
		"func(dst *float32, step int, row, x *float32, stride int, ids *uint32, n, seen, heads, full, lanesA, lanesB, last int)",
		"Sets heads floats of dst for each edge, step bytes apart, to the products of row and the row of x of the edge's id. The last "+
			"columns of a head have last bytes.")
	newDotting(s).blocks("four", 4)
}

// newDotting reads the parameters that dots and bentDots share.
func newDotting(s isa) *dotting {
	d := &dotting{isa: s, masks: []Register{s.mask("lanesA")}}
	if !s.wide {
		d.masks = append(d.masks, s.mask("lanesB"))
	}
	d.dst, d.row, d.ids = arg("dst"), arg("row"), arg("ids")
	return d
}

// blocks generates the loops over blocks of edges and over the rest, and the end of the routine.
func (d *dotting) blocks(label string, count int) {
	loop := func(label, end string, count int) {
		Label(label)
		CMPQ(place(Param("n")), U8(count))
		JLT(LabelRef(end))
		d.edges(count)
		JMP(LabelRef(label))
	}
	loop(label, "one", count)
	loop("one", "done", 1)
	Label("done")
	leave()
}

// dotting contains the shared state of the routine's parts. masks are the masks of the vectors
// with the last sixteen columns.
type dotting struct {
	isa
	masks         []Register
	dst, row, ids Register

	vector Register   // multiplied with leaky sums; nil in dots
	slope  VecVirtual // of leaky sums
}

// edges generates the products of the given number of edges.
func (d *dotting) edges(count int) {
	name := fmt.Sprintf("edges%d", count)
	look := GP64()
	MOVQ(U32(4*ahead), look)
	CMPQ(place(Param("seen")), U8(count))
	JGE(LabelRef(name + "_seen"))
	XORQ(look, look)
	Label(name + "_seen")
	var from, next []Register
	for e := range count {
		from = append(from, d.address(Mem{Base: d.ids, Disp: 4 * e}))
		q := d.address(Mem{Base: d.ids, Disp: 4 * e, Index: look, Scale: 1})
		PREFETCHT0(Mem{Base: q})
		next = append(next, q)
	}
	offset, heads := GP64(), arg("heads")
	XORQ(offset, offset)
	Label(name + "_head")
	acc := make([][]VecVirtual, len(d.masks)) // by half, by edge
	for h := range acc {
		for range count {
			v := d.vec()
			d.zero(v)
			acc[h] = append(acc[h], v)
		}
	}
	full := arg("full")
	countdown(name+"_columns", name+"_last", full, func() {
		d.columns(acc, from, next, offset, false)
		ADDQ(U8(64), offset)
	})
	d.columns(acc, from, next, offset, true)
	ADDQ(place(Param("last")), offset)
	d.write(d.sums(acc), count)
	DECQ(heads)
	JNZ(LabelRef(name + "_head"))

	// dst has advanced by one edge per edge, and by all heads.
	step := arg("step")
	for range count {
		ADDQ(step, d.dst)
	}
	heads = arg("heads")
	SHLQ(U8(2), heads)
	SUBQ(heads, d.dst)
	ADDQ(U8(4*count), d.ids)
	SUBQ(U8(count), place(Param("n")))
	SUBQ(U8(count), place(Param("seen")))
}

func (d *dotting) address(id Mem) Register {
	return rowAddress(id, place(Param("stride")), place(Param("x")))
}

// columns adds sixteen columns, and prefetches the cache line of the last one.
func (d *dotting) columns(acc [][]VecVirtual, from, next []Register, offset Register, last bool) {
	for _, q := range next {
		PREFETCHT0(Mem{Base: q, Index: offset, Scale: 1, Disp: 63})
	}
	for h, mask := range d.masks {
		if !last {
			mask = nil
		}
		row := d.loaded(Mem{Base: d.row, Index: offset, Scale: 1, Disp: d.bytes * h}, mask)
		if d.vector != nil {
			vector := d.loaded(Mem{Base: d.vector, Index: offset, Scale: 1, Disp: d.bytes * h}, mask)
			for e, p := range from {
				d.bent(row, vector, Mem{Base: p, Index: offset, Scale: 1, Disp: d.bytes * h}, mask, acc[h][e])
			}
			continue
		}
		for e, p := range from {
			d.fmaFrom(Mem{Base: p, Index: offset, Scale: 1, Disp: d.bytes * h}, row, mask, acc[h][e])
		}
	}
}

// sums returns the lane sums of four edges in a vector of four.
func (d *dotting) sums(acc [][]VecVirtual) VecVirtual {
	var half VecVirtual
	if d.wide {
		t := d.transposed(acc[0])
		half = YMM()
		VEXTRACTF64X4(U8(1), t, half)
		VADDPS(half, t.AsY(), half)
	} else {
		a, b := d.transposed(acc[0]), d.transposed(acc[1])
		half = a
		VADDPS(b, a, half)
	}
	quarter := XMM()
	VEXTRACTF128(U8(1), half, quarter)
	VADDPS(quarter, half.AsX(), quarter)
	return quarter
}

// transposed returns the sums over groups of four lanes, next to each other for all edges.
func (d *dotting) transposed(v []VecVirtual) VecVirtual {
	for len(v) < 4 {
		v = append(v, v[0])
	}
	pairs := make([]VecVirtual, 2)
	for i := range pairs {
		lo, hi := d.vec(), d.vec()
		VUNPCKLPS(v[2*i+1], v[2*i], lo)
		VUNPCKHPS(v[2*i+1], v[2*i], hi)
		VADDPS(hi, lo, lo)
		pairs[i] = lo
	}
	lo, hi := d.vec(), d.vec()
	VUNPCKLPD(pairs[1], pairs[0], lo)
	VUNPCKHPD(pairs[1], pairs[0], hi)
	VADDPS(hi, lo, lo)
	return lo
}

// write stores the sum of each edge and advances to the next head.
func (d *dotting) write(sums VecVirtual, count int) {
	at, step := GP64(), arg("step")
	MOVQ(d.dst, at)
	for e := range count {
		VEXTRACTPS(U8(e), sums, Mem{Base: at})
		if e < count-1 {
			ADDQ(step, at)
		}
	}
	ADDQ(U8(4), d.dst)
}

// weigh generates the weighted sum of the rows of edges. Accumulators stay in registers over all
// edges. Either one head has all columns of the tile, or heads selects the weight of each
// column. Signed weights count by absolute value, and with their signs in a second sum.
func weigh(s isa) {
	routine("weigh"+s.name, "func(dst, x *float32, stride int, ids *uint32, weights *float32, step, ahead, rest, vectors, lanes int, "+
		"heads *uint32, signed *float32)",
		"Adds the sum over ahead+rest edges of weight times the tile of row id. The first ahead edges prefetch later rows. Unless signed "+
			"is nil, it adds the sum of the absolute weights to dst, and the sum with signs to signed.")
	w := weighing{isa: s, mask: s.mask("lanes"), dst: arg("dst")}
	w.x, w.stride, w.ids, w.weights = arg("x"), arg("stride"), arg("ids"), arg("weights")
	w.step, w.ahead, w.rest, w.end = arg("step"), arg("ahead"), arg("rest"), arg("lanes")
	SHLQ(U8(2), w.end)
	either("heads", "heads", func(heads bool) {
		either("signed", fmt.Sprintf("signed_%t", heads), func(signed bool) {
			widest := 8
			if w.heads = heads; heads && !s.wide {
				widest /= 2
			}
			if w.size = nil; signed {
				w.size = s.vec()
				s.magnitude(w.size)
			}
			if signed && !s.wide {
				widest /= 2
			}
			tiles(fmt.Sprintf("tile_%t_%t_", heads, signed), widest, w.tile)
		})
	})
}

// either generates the code for a pointer that is nil, and the code for another one, from a label on.
func either(pointer, label string, body func(there bool)) {
	CMPQ(place(Param(pointer)), U8(0))
	JNE(LabelRef(label))
	body(false)
	Label(label)
	body(true)
}

// weighing has the parameters of weigh in registers.
type weighing struct {
	isa
	heads                        bool
	size                         VecVirtual // all bits except the sign; nil: weights have no signs
	mask                         Register
	dst, x, stride, ids, weights Register
	step, ahead, rest, end       Register
}

// tile generates the code for a number of vectors.
func (w *weighing) tile(name string, vectors int) {
	acc := w.loadTile(w.dst, w.mask, vectors)
	var signed, head []VecVirtual
	if w.size != nil {
		signed = w.loadTile(arg("signed"), w.mask, vectors)
	}
	if w.heads {
		head = w.loadTile(arg("heads"), nil, vectors)
	}
	aheadAndRest(name, w.ahead, w.rest, func(prefetch bool) { w.edge(acc, signed, head, prefetch) })
	w.storeTile(acc, w.mask, w.dst)
	if signed != nil {
		w.storeTile(signed, w.mask, arg("signed"))
	}
	leave()
}

// edge adds one edge.
func (w *weighing) edge(acc, signed, head []VecVirtual, prefetch bool) {
	p := w.row(0)
	if prefetch {
		q := w.row(ahead)
		for d := 0; d < len(acc)*w.bytes; d += 64 {
			PREFETCHT0(Mem{Base: q, Disp: d})
		}
		PREFETCHT0(Mem{Base: q, Index: w.end, Scale: 1, Disp: (len(acc)-1)*w.bytes - 1})
	}
	weight, size := w.vec(), w.vec()
	if !w.heads {
		VBROADCASTSS(Mem{Base: w.weights}, weight)
	}
	for i := range acc {
		at, mask := Mem{Base: p, Disp: w.bytes * i}, onlyLast(w.mask, i, len(acc))
		if w.heads {
			VPERMPS(Mem{Base: w.weights}, head[i], weight)
		}
		if signed == nil {
			w.fmaFrom(at, weight, mask, acc[i])
			continue
		}
		if w.heads || i == 0 {
			w.sized(weight, size)
		}
		v := w.loaded(at, mask) // once: a vector may be in two cache lines
		VFMADD231PS(v, weight, signed[i])
		VFMADD231PS(v, size, acc[i])
	}
	ADDQ(U8(4), w.ids)
	ADDQ(w.step, w.weights)
}

// magnitude sets all bits except the sign.
func (s isa) magnitude(v VecVirtual) {
	if s.wide {
		VPTERNLOGD(U8(0xff), v, v, v)
	} else {
		VPCMPEQD(v, v, v)
	}
	VPSRLD(U8(1), v, v)
}

// sized sets size to the absolute weights.
func (w *weighing) sized(weight, size VecVirtual) {
	if w.wide {
		VPANDD(w.size, weight, size)
	} else {
		VANDPS(w.size, weight, size)
	}
}

// row returns the address of x's row for a later edge.
func (w *weighing) row(at int) GPVirtual {
	return rowAddress(Mem{Base: w.ids, Disp: 4 * at}, w.stride, w.x)
}
