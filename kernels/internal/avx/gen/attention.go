package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// attention generates the routines on a block of edges. Scores and weights are stored edge by
// edge, each edge with a power of two of heads.
func attention(s isa) {
	if !s.wide {
		less(s)
		repeat(s)
		scores(s)
		scoresOfOne(s)
		ends(s)
		endsOfOne(s)
		look()
		e := newExponential32()
		weights(s, e, false)
		weights(s, e, true)
		slopes(s, e, false)
		slopes(s, e, true)
	}
	scaleRow(s)
	edgeMask(s)
	dots(s)
	if s.wide {
		order := evenOdd()
		dotsOfEight(s, order, false)
		dotsOfEight(s, order, true)
	}
	weigh(s)
	dynamic(s)
}

// single returns a float32, repeated for each lane, in read-only memory.
func single(name string, v float64) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for lane := range 8 {
		DATA(4*lane, U32(math.Float32bits(float32(v))))
	}
	return m
}

// exponential32 computes e^x in eight lanes of float32: 2^n·e^r with |r| ≤ ln2/2, by a Taylor
// polynomial. The first omitted term is 5e-9; with rounding, the relative error is 2e-7. The result
// is 0 below -86, and e^87 above 87. A NaN stays NaN.
type exponential32 struct {
	least, most, log2e, hi, lo Mem
	one                        Mem // for others
	coefficients               []Mem
}

func newExponential32() *exponential32 {
	const hi = 355. / 512 // its product with n is exact
	e := &exponential32{
		least: single("least32", -86), most: single("most32", 87), log2e: single("log2e32", math.Log2E),
		hi: single("ln2hi32", hi), lo: single("ln2lo32", math.Ln2-hi), one: single("one32", 1),
	}
	factorial := 1.0
	for k := range 8 {
		factorial *= float64(max(k, 1))
		e.coefficients = append(e.coefficients, single("taylor32"+string(rune('a'+k)), 1/factorial))
	}
	return e
}

// of replaces x by its exponential.
func (e *exponential32) of(x VecVirtual) {
	const notBelow = 0x15 // quiet
	n, p, there := YMM(), YMM(), YMM()
	VMOVUPS(e.least, n)
	VCMPPS(U8(notBelow), n, x, there)
	VMAXPS(x, n, x)
	VMOVUPS(e.most, n)
	VMINPS(x, n, x)
	VMULPS(e.log2e, x, n)
	VROUNDPS(U8(8), n, n)
	VFNMADD231PS(e.hi, n, x)
	VFNMADD231PS(e.lo, n, x)
	last := len(e.coefficients) - 1
	VMOVUPS(e.coefficients[last], p)
	for k := last - 1; k >= 0; k-- {
		VFMADD213PS(e.coefficients[k], x, p)
	}
	VCVTPS2DQ(n, n)
	VPSLLD(U8(23), n, n)
	VPADDD(n, p, x)
	VANDPS(there, x, x)
}

// less generates the subtraction of a base from column ids. It prefetches much later ids: between
// the ids of two rows, the rows of all edges are read, and the processor does not recognise the
// stream.
func less(s isa) {
	routine("less"+s.name, "func(dst, cols *uint32, base uint32, full, lanes int)",
		"Sets dst to cols-base.")
	dst, cols := arg("dst"), arg("cols")
	base := s.vec()
	broadcastWord(Load(Param("base"), GP32()), base)
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v := s.loaded(at(cols), mask)
		later := at(cols)
		later.Disp = 1024
		PREFETCHT0(later)
		VPSUBD(base, v, v)
		s.store(v, mask, at(dst))
	})
}

// repeat generates the repetition of a few values in eight lanes. Vectors that a scalar loop writes would be read before they
// are in the cache, and a load with a mask waits for stores. One value and eight of them need no mask.
func repeat(s isa) {
	routine("repeat"+s.name, "func(dst, from *float32, order *uint32, lanes int)",
		"Sets lane i of dst to from[order[i]], 0 for numbers from lanes on.")
	dst, from, lanes, v := arg("dst"), arg("from"), arg("lanes"), s.vec()
	CMPQ(lanes, U8(1))
	JEQ(LabelRef("one"))
	CMPQ(lanes, U8(8))
	JEQ(LabelRef("eight"))
	s.load(Mem{Base: from}, s.mask("lanes"), v)
	VPERMPS(v, s.loaded(Mem{Base: arg("order")}, nil), v)
	JMP(LabelRef("store"))
	Label("one")
	VBROADCASTSS(Mem{Base: from}, v)
	JMP(LabelRef("store"))
	Label("eight")
	VMOVUPS(Mem{Base: from}, v)
	Label("store")
	VMOVUPS(v, Mem{Base: dst})
	leave()
}

// scoresAhead is the number of edges by which a score is prefetched before its use, in later rows
// too. Package avx has the same number.
const scoresAhead = 24

// scores generates a routine that stores a full vector per edge. The next edge overwrites the
// lanes beyond the heads.
func scores(s isa) {
	routine("scores"+s.name,
		"func(dst *float32, step int, near, far *float32, stride int, ids *uint32, n, heads int, slope float32, top *float32)",
		"Sets eight lanes of dst for each of n edges, step bytes apart, to the leaky near + far[id]. It raises top to them.")
	dst, step, far, stride := arg("dst"), arg("step"), arg("far"), arg("stride")
	ids, n, topAt := arg("ids"), arg("n"), arg("top")
	near, top, slope := s.loaded(Mem{Base: arg("near")}, nil), s.loaded(Mem{Base: topAt}, nil), s.parameter("slope")
	mask := s.mask("heads")
	Label("next")
	p, q := rowPair(Mem{Base: ids}, Mem{Base: ids, Disp: 4 * scoresAhead}, stride)
	v, leaky := s.vec(), s.vec()
	PREFETCHT0(Mem{Base: far, Index: q, Scale: 1})
	s.load(Mem{Base: far, Index: p, Scale: 1}, mask, v)
	bending(near, slope, v, leaky)
	VMAXPS(top, v, top)
	VMOVUPS(v, Mem{Base: dst})
	ADDQ(step, dst)
	ADDQ(U8(4), ids)
	DECQ(n)
	JNZ(LabelRef("next"))
	VMOVUPS(top, Mem{Base: topAt})
	leave()
}

// scoresOfOne generates scores for one head: a copy of the values of far vertices, and eight edges at a time from it.
func scoresOfOne(s isa) {
	routine("scoresOfOne"+s.name, "func(dst, near, far *float32, stride int, ids *uint32, slope float32, top *float32, full, lanes int)",
		"Sets dst to the leaky near + far[id·stride]. It raises all lanes of top to the largest.")
	dst, far, topAt, stride := arg("dst"), arg("far"), arg("top"), arg("stride")
	pickFar(dst, func(id, to Register, disp int) {
		IMULQ(stride, id)
		copyWord(Mem{Base: far, Index: id, Scale: 4}, Mem{Base: to, Disp: disp})
	})
	near, top, slope := s.loaded(Mem{Base: arg("near")}, nil), s.loaded(Mem{Base: topAt}, nil), s.parameter("slope")
	least := s.loaded(single("never32", math.Inf(-1)), nil)
	eachVector(s, func(place func(Register) Mem, mask Register) {
		v, leaky := s.loaded(place(dst), nil), s.vec()
		bending(near, slope, v, leaky)
		VMOVUPS(v, place(dst))
		if mask != nil {
			VBLENDVPS(mask, v, least, v)
		}
		VMAXPS(top, v, top)
		if mask == nil {
			return
		}
		VPERM2F128(U8(1), top, top, v)
		VMAXPS(v, top, top)
		VPERMILPS(U8(0b01_00_11_10), top, v)
		VMAXPS(v, top, top)
		VPERMILPS(U8(0b10_11_00_01), top, v)
		VMAXPS(v, top, top)
		VMOVUPS(top, Mem{Base: topAt})
	})
}

// pickFar generates one for each of 8·full+lanes edges: its id, which may be overwritten, and its place in an array
// that starts at dst. The processor overlaps many scalar loads, but not gathers of eight into a vector.
func pickFar(dst Register, one func(id, to Register, disp int)) {
	ids, to, n := arg("ids"), GP64(), arg("full")
	MOVQ(dst, to)
	SHLQ(U8(3), n)
	ADDQ(place(Param("lanes")), n)
	unroll("eight", 8, n, func(disp int) {
		id := GP64()
		MOVL(Mem{Base: ids, Disp: disp}, id.As32())
		one(id, to, disp)
	}, ids, to)
}

// copyWord copies four bytes.
func copyWord(from, to Mem) {
	word := GP32()
	MOVL(from, word)
	MOVL(word, to)
}

// rowPair reads the offsets of the rows of two ids.
func rowPair(id, later Mem, stride Op) (p, q GPVirtual) {
	p, q = GP64(), GP64()
	MOVL(id, p.As32())
	MOVL(later, q.As32())
	IMULQ(stride, p)
	IMULQ(stride, q)
	return p, q
}

// scaleRow generates x *= factor.
func scaleRow(s isa) {
	routine("scaleRow"+s.name, "func(x *float32, factor float32, full, lanes int)",
		"Multiplies x by factor.")
	x, factor := arg("x"), s.parameter("factor")
	eachVector(s, func(at func(Register) Mem, mask Register) {
		v := s.loaded(at(x), mask)
		VMULPS(factor, v, v)
		s.store(v, mask, at(x))
	})
}

// weights generates the conversion of scores into softmax weights without the division by their
// sum. Signed weights have the sign bit if the score is not positive, and the exponentials with
// these signs are summed, too.
func weights(s isa, e *exponential32, withSigns bool) {
	name, params := "weights", ""
	doc := "Replaces scores by keep·e^(score-top), and adds the exponentials to sum."
	if withSigns {
		name, params = "signedWeights", ", signed"
		doc = "Replaces scores by keep·e^(score-top), negative unless the score is positive. It adds the exponentials to sum, " +
			"and with these signs to signed."
	}
	routine(name+s.name, "func(scores, keep *float32, keepStep int, top, sum"+params+" *float32, full, lanes int)", doc)
	at, keep, step := arg("scores"), arg("keep"), arg("keepStep")
	top, sum := s.loaded(Mem{Base: arg("top")}, nil), s.loaded(Mem{Base: arg("sum")}, nil)
	var signed, zero, sign VecVirtual
	if withSigns {
		signed, zero, sign = s.loaded(Mem{Base: arg("signed")}, nil), s.vec(), s.vec()
		s.zero(zero)
		VBROADCASTSS(single("negative32", math.Copysign(0, -1)), sign)
	}
	overVectors(s, func(place func(Register) Mem, mask Register) {
		v, negative := s.loaded(place(at), nil), s.vec()
		if withSigns {
			VCMPPS(U8(greater), zero, v, negative)
			VANDNPS(sign, negative, negative)
		}
		VSUBPS(top, v, v)
		e.of(v)
		if mask != nil {
			VANDPS(mask, v, v)
		}
		VADDPS(v, sum, sum)
		if withSigns {
			VXORPS(negative, v, v)
			VADDPS(v, signed, signed)
		}
		VMULPS(Mem{Base: keep}, v, v)
		VMOVUPS(v, place(at))
		ADDQ(step, keep)
	})
	VMOVUPS(sum, Mem{Base: arg("sum")})
	if withSigns {
		VMOVUPS(signed, Mem{Base: arg("signed")})
	}
	leave()
}

// slopes generates the backward pass from gradients of weights to gradients of scores: their
// sums, or one per edge.
func slopes(s isa, e *exponential32, each bool) {
	name, doc := "slopes", "Replaces scores by their weights, and adds to sum the gradients of the inputs of the leaky scores."
	if each {
		name, doc = "slopesOfEdges", "Replaces scores by their weights, and dq by the gradients of the inputs of the leaky scores."
	}
	routine(name+s.name,
		"func(scores, dq, keep *float32, keepStep int, lse, dots *float32, farStep int, slope float32, sum *float32, full, lanes int)",
		doc)
	at, dq, keep, keepStep := arg("scores"), arg("dq"), arg("keep"), arg("keepStep")
	lse, dots, farStep, sumAt := arg("lse"), arg("dots"), arg("farStep"), arg("sum")
	slope, sum, zero := s.parameter("slope"), s.loaded(Mem{Base: sumAt}, nil), s.vec()
	s.zero(zero)
	eachVector(s, func(place func(Register) Mem, mask Register) {
		score, p, d, factor := s.loaded(place(at), nil), s.vec(), s.vec(), s.vec()
		VSUBPS(Mem{Base: lse}, score, p)
		e.of(p)
		VCMPPS(U8(greater), zero, score, factor)
		VBLENDVPS(factor, e.one, slope, factor)
		VMOVUPS(Mem{Base: keep}, score)
		VMULPS(place(dq), score, d)
		VSUBPS(Mem{Base: dots}, d, d)
		VMULPS(p, d, d)
		VMULPS(factor, d, d)
		if each {
			VMOVUPS(d, place(dq))
		} else {
			if mask != nil {
				VANDPS(mask, d, d)
			}
			VADDPS(d, sum, sum)
		}
		VMULPS(score, p, p)
		VMOVUPS(p, place(at))
		ADDQ(keepStep, keep)
		ADDQ(farStep, lse)
		ADDQ(farStep, dots)
		if mask != nil && !each {
			VMOVUPS(sum, Mem{Base: sumAt})
		}
	})
}

// edgeMask generates four random words per edge, one for each of four heads. With narrower
// steps, the next edge overwrites the extra lanes.
func edgeMask(s isa) {
	routine("edgeMask"+s.name,
		"func(draw *uint32, dst *float32, step int, sources *uint32, sourceStep int, targets *uint32, targetStep int, turns int)",
		"Sets four floats of dst for each edge, step bytes apart, to the factors of dropout of four heads.")
	p, odds := newPhilox(s), s.odd(0xaa)
	dst, step, turns, sources, targets := arg("dst"), arg("step"), arg("turns"), arg("sources"), arg("targets")
	Label("next")
	source, target := s.vec(), s.vec()
	VPMOVZXDQ(Mem{Base: sources}, source)
	VPMOVZXDQ(Mem{Base: targets}, target)
	p.row(source)
	even, odd := p.unpacked(target, odds)
	even, odd = p.factor(even), p.factor(odd)
	for quarter := range s.bytes / 16 {
		for _, v := range []VecVirtual{even, odd} {
			if s.wide {
				VEXTRACTF32X4(U8(quarter), v, Mem{Base: dst})
			} else {
				VEXTRACTF128(U8(quarter), v, Mem{Base: dst})
			}
			ADDQ(step, dst)
		}
	}
	ADDQ(place(Param("sourceStep")), sources)
	ADDQ(place(Param("targetStep")), targets)
	DECQ(turns)
	JNZ(LabelRef("next"))
	leave()
}

// factor returns the scale where the word retains its element, else 0.
func (p *philox) factor(word VecVirtual) VecVirtual {
	keep, v := p.keeps(word, nil), p.scale()
	if p.s.wide {
		VMOVAPS_Z(v, keep, v)
	} else {
		VANDPS(keep, v, v)
	}
	return v
}
