package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The softmax of a group of rows has a row in each lane of float64: 8 rows with AVX-512, 4 with AVX2. Vectors of
// four columns are transposed in registers. Each pass is a routine for one group, so that the processor overlaps
// groups: a pass waits for no result of its own.

// group has the rows of a group.
type group struct {
	isa
	rows []GPVirtual // addresses
}

// newGroup loads the addresses of the rows of z whose numbers are in the parameter rows.
func (s isa) newGroup() *group {
	g, z, stride, ids := &group{isa: s}, arg("z"), arg("stride"), arg("rows")
	for i := range s.bytes / 8 {
		g.rows = append(g.rows, rowAddress(Mem{Base: ids, Disp: 4 * i}, stride, z))
	}
	return g
}

// half returns a register for a float32 of each row.
func (s isa) half() VecVirtual {
	if s.wide {
		return YMM()
	}
	return XMM()
}

// window returns a mask of the first lanes, a parameter, of XMM or YMM registers.
func window(mask VecVirtual) VecVirtual {
	lanes, at := arg("lanes"), GP64()
	LEAQ(NewDataAddr(Symbol{Name: "ones", Static: true}, 32), at)
	SHLQ(U8(2), lanes)
	SUBQ(lanes, at)
	VMOVUPS(Mem{Base: at}, mask)
	return mask
}

// blocks runs body for four columns at a time, and for the rest with their mask.
func (g *group) blocks(body func(offset Register, mask VecVirtual)) {
	full, offset := arg("full"), GP64()
	XORQ(offset, offset)
	countdown("block", "rest", full, func() {
		body(offset, nil)
		ADDQ(U8(16), offset)
	})
	CMPQ(place(Param("lanes")), U8(0))
	JEQ(LabelRef("end"))
	body(offset, window(g.half()))
	Label("end")
}

// load returns four columns of the rows: vector i has those of row i, and of row i+4 in its upper half. Unless
// other is nil, it replaces masked columns.
func (g *group) load(offset Register, mask, other VecVirtual) (v [4]VecVirtual) {
	masked := func(from Mem, part func(VecVirtual) VecVirtual, dst VecVirtual) {
		VMASKMOVPS(from, part(mask), dst)
		if other != nil {
			VBLENDVPS(part(mask), dst, part(other), dst)
		}
	}
	for i := range v {
		v[i] = g.half()
		at := g.at(i, offset)
		switch {
		case mask != nil:
			masked(at, func(v VecVirtual) VecVirtual { return v }, v[i])
		case g.wide: // overwrites the whole register
			VBROADCASTF128(at, v[i])
		default:
			VMOVUPS(at, v[i])
		}
		switch {
		case g.wide && mask != nil:
			upper := XMM()
			masked(g.at(i+4, offset), low, upper)
			VINSERTF128(U8(1), upper, v[i], v[i])
		case g.wide:
			VINSERTF128(U8(1), g.at(i+4, offset), v[i], v[i])
		}
	}
	return v
}

// store stores full vectors of load.
func (g *group) store(v [4]VecVirtual, offset Register) {
	for i, v := range v {
		VMOVUPS(low(v), g.at(i, offset))
		if g.wide {
			VEXTRACTF128(U8(1), v, g.at(i+4, offset))
		}
	}
}

// storeRest stores the first lanes of vectors of load, and jumps to end.
//
// Design note: masked stores are slower, because a load of the next row waits for them.
func (g *group) storeRest(v [4]VecVirtual, offset Register, end string) {
	rows := v[:]
	for _, v := range v {
		if g.wide {
			upper := XMM()
			VEXTRACTF128(U8(1), v, upper)
			rows = append(rows, upper)
		}
	}
	each := func(store func(v VecVirtual, at Mem)) {
		for i, v := range rows {
			store(low(v), g.at(i, offset))
		}
	}
	CMPQ(place(Param("lanes")), U8(2))
	JLT(LabelRef("one"))
	each(func(v VecVirtual, at Mem) { VMOVSD(v, at) })
	JEQ(LabelRef(end))
	each(func(v VecVirtual, at Mem) { VEXTRACTPS(U8(2), v, at.Offset(8)) })
	JMP(LabelRef(end))
	Label("one")
	each(func(v VecVirtual, at Mem) { VMOVSS(v, at) })
}

// at returns the memory of a row.
func (g *group) at(row int, offset Register) Mem {
	return Mem{Base: g.rows[row], Index: offset, Scale: 1}
}

// low returns the lower half of a register.
func low(v VecVirtual) VecVirtual { return v.AsX().(VecVirtual) }

// transposed returns the vectors of columns for the vectors of rows, and the reverse.
func (s isa) transposed(v [4]VecVirtual) (t [4]VecVirtual) {
	var pairs [4]VecVirtual
	for i := range t {
		t[i], pairs[i] = s.half(), s.half()
	}
	VUNPCKLPS(v[1], v[0], pairs[0])
	VUNPCKLPS(v[3], v[2], pairs[1])
	VUNPCKHPS(v[1], v[0], pairs[2])
	VUNPCKHPS(v[3], v[2], pairs[3])
	for i := 0; i < 4; i += 2 {
		VUNPCKLPD(pairs[i+1], pairs[i], t[i])
		VUNPCKHPD(pairs[i+1], pairs[i], t[i+1])
	}
	return t
}

// largest generates the maxima of rows. The maximum of the previous maximum and a NaN is the previous maximum.
func largest(s isa) {
	routine("largest"+s.name, "func(tops, z *float32, stride int, rows *uint32, full, lanes int)",
		"Sets tops to the largest elements of a group of rows of z, stride bytes apart.")
	g, least := s.newGroup(), s.half()
	bits := GP32()
	MOVL(U32(math.Float32bits(float32(math.Inf(-1)))), bits)
	VMOVD(bits, low(least))
	VBROADCASTSS(low(least), least)
	var tops [4]VecVirtual
	for i := range tops {
		tops[i] = s.half()
		VMOVAPS(least, tops[i])
	}
	g.blocks(func(offset Register, mask VecVirtual) {
		for i, x := range g.load(offset, mask, least) {
			VMAXPS(tops[i], x, tops[i])
		}
	})
	c := s.transposed(tops)
	VMAXPS(c[1], c[0], c[0])
	VMAXPS(c[3], c[2], c[2])
	VMAXPS(c[2], c[0], c[0])
	VMOVUPS(c[0], Mem{Base: arg("tops")})
	leave()
}

// exponentials generates the exponentials of rows, and their sums: columns j with equal j%4 first.
func exponentials(s isa) {
	routine("exponentials"+s.name, "func(dst, z *float32, stride int, rows *uint32, tops *float32, sums, factors *float64, scale float64, "+
		"full, lanes int)", "Sets a group of rows of dst, unless it is nil, to e^(z-tops), sums to their sums, and factors to scale/sums.")
	g, e := s.newGroup(), s.newExponential()
	top := s.vec()
	VCVTPS2PD(Mem{Base: arg("tops")}, top)
	var sums [4]VecVirtual
	for i := range sums {
		sums[i] = s.vec()
		s.zero(sums[i])
	}
	difference, to := arg("dst"), GP64()
	SUBQ(place(Param("z")), difference)
	g.blocks(func(offset Register, mask VecVirtual) {
		c := s.transposed(g.load(offset, mask, nil))
		stored, label := "stored", "columns"
		if mask != nil {
			stored, label = "stored_rest", "columns_rest"
		}
		columns := 4
		if mask != nil {
			columns = 3
		}
		for k := range columns {
			if mask != nil && k > 0 {
				CMPQ(place(Param("lanes")), U8(k))
				JEQ(LabelRef(label))
			}
			x := s.vec()
			VCVTPS2PD(c[k], x)
			VSUBPD(top, x, x)
			e.of(x)
			VADDPD(x, sums[k], sums[k])
			if s.wide {
				VCVTPD2PS(x, c[k])
			} else {
				VCVTPD2PSY(x, c[k])
			}
		}
		Label(label)
		CMPQ(place(Param("dst")), U8(0))
		JEQ(LabelRef(stored))
		LEAQ(Mem{Base: difference, Index: offset, Scale: 1}, to)
		if c = s.transposed(c); mask == nil {
			g.store(c, to)
		} else {
			g.storeRest(c, to, stored)
		}
		Label(stored)
	})
	VADDPD(sums[2], sums[0], sums[0])
	VADDPD(sums[3], sums[1], sums[1])
	VADDPD(sums[1], sums[0], sums[0])
	VMOVUPD(sums[0], Mem{Base: arg("sums")})
	factor := s.vec()
	VBROADCASTSD(place(Param("scale")), factor)
	VDIVPD(sums[0], factor, factor)
	VMOVUPD(factor, Mem{Base: arg("factors")})
	leave()
}

// scaleRows generates the products of rows and their factors, in parts without masks, for the reason at storeRest.
func scaleRows(s isa) {
	routine("scaleRows"+s.name, "func(dst *float32, stride int, rows *uint32, factors *float64, n, full, lanes int)",
		"Multiplies n rows of dst by factors. A row has full parts of 8 columns, and lanes more.")
	dst, stride, ids, factors, lanes := arg("dst"), arg("stride"), arg("rows"), arg("factors"), arg("lanes")
	factor := s.vec()
	four := func(at Mem) {
		x, v := YMM(), XMM()
		VCVTPS2PD(at, x)
		VMULPD(factor.AsY(), x, x)
		VCVTPD2PSY(x, v)
		VMOVUPS(v, at)
	}
	countdown("row", "done", arg("n"), func() {
		at, full := rowAddress(Mem{Base: ids}, stride, dst), arg("full")
		VBROADCASTSD(Mem{Base: factors}, factor)
		countdown("eight", "rest", full, func() {
			if s.wide {
				x, v := ZMM(), YMM()
				VCVTPS2PD(Mem{Base: at}, x)
				VMULPD(factor, x, x)
				VCVTPD2PS(x, v)
				VMOVUPS(v, Mem{Base: at})
			} else {
				four(Mem{Base: at})
				four(Mem{Base: at, Disp: 16})
			}
			ADDQ(U8(32), at)
		})
		part := func(columns int, one func(at Mem)) {
			label := fmt.Sprint("below", columns)
			TESTQ(U32(columns), lanes)
			JEQ(LabelRef(label))
			one(Mem{Base: at})
			ADDQ(U8(4*columns), at)
			Label(label)
		}
		part(4, four)
		part(2, func(at Mem) {
			x := XMM()
			VCVTPS2PD(at, x)
			VMULPD(factor.AsX(), x, x)
			VCVTPD2PSX(x, x)
			VMOVSD(x, at)
		})
		part(1, func(at Mem) {
			x := XMM()
			VMOVSS(at, x)
			VCVTPS2PD(x, x)
			VMULPD(factor.AsX(), x, x)
			VCVTPD2PSX(x, x)
			VMOVSS(x, at)
		})
		ADDQ(U8(4), ids)
		ADDQ(U8(8), factors)
	})
	leave()
}
