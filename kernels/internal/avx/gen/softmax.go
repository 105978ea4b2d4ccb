package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The softmax takes four columns of two rows at a time. Each pass is a routine for many rows, so that the processor overlaps
// rows: a pass waits for no result of its own.

// element returns the memory of a row's element of an array of float64. Row 0 or 1 is the first or the second row.
type element func(array Register, row int) Mem

// overRows generates a pass over n pairs of rows of z: rows i and n+i, because the masked load of a row waits for a store to
// the next one. body gets four columns of the rows, and a mask if there are fewer. It returns doubles to store in dst unless
// that is nil, or no doubles.
func overRows(begin func(element), body func(x [2]Op, mask VecVirtual) []VecVirtual, end func(element)) {
	ids, offset, mask := arg("rows"), GP64(), restMask()
	index := [2]GPVirtual{GP64(), arg("n")}
	of := func(array Register, row int) Mem { return Mem{Base: array, Index: index[row], Scale: 8} }
	XORQ(index[0], index[0])
	countdown("row", "done", arg("n"), func() {
		var at [2]Mem
		for i, k := range index {
			row := rowAddress(Mem{Base: ids, Index: k, Scale: 4}, place(Param("stride")), place(Param("z")))
			at[i] = Mem{Base: row, Index: offset, Scale: 1}
		}
		begin(of)
		full := arg("full")
		XORQ(offset, offset)
		TESTQ(full, full)
		JZ(LabelRef("rest"))
		Label("four")
		storeColumns(body([2]Op{at[0], at[1]}, nil), at, false)
		ADDQ(U8(16), offset)
		DECQ(full)
		JNZ(LabelRef("four"))
		Label("rest")
		CMPQ(place(Param("lanes")), U8(0))
		JEQ(LabelRef("end"))
		x := [2]Op{XMM(), XMM()}
		for i := range x {
			VMASKMOVPS(at[i], mask, x[i])
		}
		storeColumns(body(x, mask), at, true)
		Label("end")
		end(of)
		for _, k := range index {
			INCQ(k)
		}
	})
	leave()
}

// restMask returns the mask of the columns after full vectors of four.
func restMask() VecVirtual { return low(sets[1].mask("lanes").(VecVirtual)) }

// low returns the first lanes of a register.
func low(v VecVirtual) VecVirtual { return v.AsX().(VecVirtual) }

// storeColumns stores doubles of two rows, four columns or the rest, in the places of dst for those of z.
//
// Design note: masked stores are slower, because a load of the next row waits for them.
func storeColumns(doubles []VecVirtual, at [2]Mem, rest bool) {
	if doubles == nil {
		return
	}
	end := "stored"
	if rest {
		end = "end"
	}
	to := arg("dst")
	TESTQ(to, to)
	JZ(LabelRef(end))
	SUBQ(place(Param("z")), to)
	ADDQ(at[0].Index, to)
	x := [2]VecVirtual{low(doubles[0]), XMM()}
	if len(doubles) == 1 {
		VCVTPD2PS(doubles[0], doubles[0].AsY())
		VEXTRACTF128(U8(1), doubles[0].AsY(), x[1])
	} else {
		VCVTPD2PSY(doubles[0], x[0])
		VCVTPD2PSY(doubles[1], x[1])
	}
	each := func(store func(...Op)) {
		for i, v := range x {
			store(v, Mem{Base: at[i].Base, Index: to, Scale: 1})
		}
	}
	if !rest {
		each(VMOVUPS)
		Label(end)
		return
	}
	CMPQ(place(Param("lanes")), U8(2))
	JLT(LabelRef("one"))
	each(VMOVSD)
	JEQ(LabelRef(end))
	each(func(o ...Op) { VEXTRACTPS(U8(2), o[0], o[1].(Mem).Offset(8)) })
	JMP(LabelRef(end))
	Label("one")
	each(VMOVSS)
}

// largest generates the maxima of rows. The maximum of the previous maximum and a NaN is the previous maximum.
func largest() {
	routine("largest256", "func(tops *float64, z *float32, stride int, rows *uint32, n, full, lanes int)",
		"Sets tops to the largest elements of n pairs of rows of z, stride bytes apart.")
	tops, top, least := arg("tops"), [2]VecVirtual{XMM(), XMM()}, XMM()
	VMOVUPS(single("never", math.Inf(-1)), least)
	overRows(func(element) {
		VMOVAPS(least, top[0])
		VMOVAPS(least, top[1])
	}, func(x [2]Op, mask VecVirtual) []VecVirtual {
		for i, top := range top {
			v := XMM()
			VMOVUPS(x[i], v)
			if mask != nil {
				VBLENDVPS(mask, v, least, v)
			}
			VMAXPS(top, v, top)
		}
		return nil
	}, func(of element) {
		for i, v := range top {
			other := XMM()
			for _, order := range []U8{0b01_00_11_10, 0b10_11_00_01} {
				VPERMILPS(order, v, other)
				VMAXPS(other, v, v)
			}
			VCVTSS2SD(v, v, v)
			VMOVSD(v, of(tops, i))
		}
	})
}

// joined returns the doubles of two rows, with AVX-512 in one register.
func (s isa) joined(a, b VecVirtual) []VecVirtual {
	if !s.wide {
		return []VecVirtual{a, b}
	}
	both := ZMM()
	VINSERTF64X4(U8(1), b, a.AsZ(), both)
	return []VecVirtual{both}
}

// exponentials generates the exponentials of rows, and their sums: columns j with equal j%4 first.
func exponentials(s isa) {
	routine("exponentials"+s.name, "func(dst, z *float32, stride int, rows *uint32, tops, sums *float64, n, full, lanes int)",
		"Sets n pairs of rows of dst, unless it is nil, to e^(z-tops), and sums to their sums.")
	tops, sums, e, masks := arg("tops"), arg("sums"), s.newExponential(), YMM()
	VPMOVSXDQ(restMask(), masks)
	masks = s.joined(masks, masks)[0]
	var top []VecVirtual
	sum := []VecVirtual{s.vec(), s.vec()}[:64/s.bytes]
	overRows(func(of element) {
		a, b := YMM(), YMM()
		VBROADCASTSD(of(tops, 0), a)
		VBROADCASTSD(of(tops, 1), b)
		top = s.joined(a, b)
		for _, v := range sum {
			s.zero(v)
		}
	}, func(x [2]Op, mask VecVirtual) []VecVirtual {
		a, b := YMM(), YMM()
		VCVTPS2PD(x[0], a)
		VCVTPS2PD(x[1], b)
		both := s.joined(a, b)
		for i, v := range both {
			VSUBPD(top[i], v, v)
			e.of(v)
			if mask != nil {
				VANDPD(masks, v, v)
			}
			VADDPD(v, sum[i], sum[i])
		}
		return both
	}, func(of element) {
		for _, v := range sum {
			other := s.vec()
			VPERMPD(U8(0b01_00_11_10), v, other)
			VADDPD(other, v, v)
			VPERMILPD(U8(0b01_01_01_01), v, other)
			VADDPD(other, v, v)
		}
		VMOVSD(low(sum[0]), of(sums, 0))
		second := sum[len(sum)-1]
		if s.wide {
			VEXTRACTF64X4(U8(1), second, second.AsY())
		}
		VMOVSD(low(second), of(sums, 1))
	})
}

// scaleRows generates the products of rows and their factors.
func scaleRows() {
	routine("scaleRows256", "func(dst, z *float32, stride int, rows *uint32, sums *float64, scale float64, n, full, lanes int)",
		"Sets n pairs of rows of dst to scale/sums times z.")
	sums, scale, factor := arg("sums"), XMM(), [2]VecVirtual{YMM(), YMM()}
	VMOVSD(place(Param("scale")), scale)
	overRows(func(of element) {
		for i, v := range factor {
			VDIVSD(of(sums, i), scale, low(v))
			VBROADCASTSD(low(v), v)
		}
	}, func(x [2]Op, _ VecVirtual) (products []VecVirtual) {
		for i, factor := range factor {
			v := YMM()
			VCVTPS2PD(x[i], v)
			VMULPD(factor, v, v)
			products = append(products, v)
		}
		return products
	}, func(element) {})
}
