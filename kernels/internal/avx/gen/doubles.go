package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// doubles has constants of float64 or of 64 bits: with AVX-512 in the upper 16 registers, for short instructions.
type doubles struct {
	isa
	count int
}

func (d *doubles) constant(name string, v float64) Op { return d.word(name, math.Float64bits(v)) }

func (d *doubles) word(name string, bits uint64) Op {
	m := GLOBL(name+d.name, RODATA|NOPTR)
	for lane := range 4 {
		DATA(8*lane, U64(bits))
	}
	if !d.wide {
		return m
	}
	r := Vector.Lookup(Index(16+d.count), S512)
	d.count++
	VBROADCASTSD(m, r)
	return r
}

// exponential computes e^x for x ≤ 0 in lanes of float64: 2^n·e^r with |r| ≤ ln2/2, by a Taylor
// polynomial. The first omitted term is 6e-15. Inputs below -708 count as -708, and a NaN
// stays NaN.
type exponential struct {
	doubles
	least                VecVirtual
	log2e, hi, lo, shift Op
	coefficients         []Op
}

func (s isa) newExponential() *exponential {
	hi := math.Float64frombits(math.Float64bits(math.Ln2) &^ (1<<32 - 1)) // its product with n is exact
	e := &exponential{doubles: doubles{isa: s}, least: s.vec()}
	e.log2e, e.shift = e.constant("log2e", math.Log2E), e.constant("shift", 3<<51)
	e.hi, e.lo = e.constant("ln2hi", hi), e.constant("ln2lo", math.Ln2-hi)
	least := GLOBL("least"+s.name, RODATA|NOPTR)
	DATA(0, U64(math.Float64bits(-708)))
	VBROADCASTSD(least, e.least)
	factorial := 1.0
	for k := range 12 {
		factorial *= float64(max(k, 1))
		e.coefficients = append(e.coefficients, e.constant("taylor"+string(rune('a'+k)), 1/factorial))
	}
	return e
}

// of replaces x by its exponential. Adding 1.5·2^52 rounds to the integer n, and leaves n in the low bits, from
// which n is shifted to the exponent.
func (e *exponential) of(x VecVirtual) {
	shifted, n, p := e.vec(), e.vec(), e.vec()
	VMAXPD(x, e.least, x)
	VMULPD(e.log2e, x, shifted)
	VADDPD(e.shift, shifted, shifted)
	VSUBPD(e.shift, shifted, n)
	VFNMADD231PD(e.hi, n, x)
	VFNMADD231PD(e.lo, n, x)
	last := len(e.coefficients) - 1
	VMOVUPD(e.coefficients[last], p)
	for k := last - 1; k >= 0; k-- {
		VFMADD213PD(e.coefficients[k], x, p)
	}
	VPSLLQ(U8(52), shifted, shifted)
	VPADDQ(shifted, p, x)
}

// logarithms generates logarithms with the operations of elementary.Log. Its f is in (√½, √2]: the integer
// difference from √½ has the exponent of f.
func logarithms(s isa) {
	routine("logarithms"+s.name, "func(x *float64, vectors int)", "Replaces numbers x, which are at least 1 or NaN, by their logarithms.")
	at, d := arg("x"), &doubles{isa: s}
	series := [...]float64{ // as in package elementary
		6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01,
		1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01,
	}
	const half, mantissa = 1022, 1<<52 - 1
	var c [len(series)]Op
	for i, v := range series {
		c[i] = d.constant(fmt.Sprint("series", i), v)
	}
	root := d.word("root", math.Float64bits(math.Sqrt2/2)&mantissa+1)
	exponent, magic := d.word("half", half<<52), d.constant("magic", 1<<52)
	bias, one, two, middle := d.constant("bias", 1<<52+half), d.constant("one", 1), d.constant("two", 2), d.constant("middle", 0.5)
	ln2hi, ln2lo := d.constant("log2hi", 6.93147180369123816490e-01), d.constant("log2lo", 1.90821492927058770002e-10)
	countdown("next", "done", arg("vectors"), func() {
		x, k, f, t := s.vec(), s.vec(), s.vec(), s.vec()
		VMOVUPD(Mem{Base: at}, x)
		VPSUBQ(root, x, k)
		VPSRLQ(U8(52), k, k)
		VPSLLQ(U8(52), k, t)
		VPSUBQ(t, x, f)
		VPADDQ(exponent, f, f)
		VSUBPD(one, f, f)
		VPADDQ(magic, k, k)
		VSUBPD(bias, k, k)

		r, s2, s4, t1, t2, square := s.vec(), s.vec(), s.vec(), s.vec(), s.vec(), s.vec()
		VADDPD(two, f, t)
		VDIVPD(t, f, r)
		VMULPD(r, r, s2)
		VMULPD(s2, s2, s4)
		chain := func(sum VecVirtual, factor VecVirtual, terms ...Op) {
			VMOVUPD(terms[0], sum)
			for _, term := range terms[1:] {
				VMULPD(s4, sum, sum)
				VADDPD(term, sum, sum)
			}
			VMULPD(factor, sum, sum)
		}
		chain(t1, s2, c[6], c[4], c[2], c[0])
		chain(t2, s4, c[5], c[3], c[1])
		VMULPD(middle, f, square)
		VMULPD(f, square, square)
		VADDPD(t2, t1, t1)
		VADDPD(t1, square, t1)
		VMULPD(r, t1, t1)
		VMULPD(ln2lo, k, t)
		VADDPD(t, t1, t1)
		VSUBPD(t1, square, square)
		VSUBPD(f, square, square)
		VMULPD(ln2hi, k, k)
		VSUBPD(square, k, k)
		VSUBPD(x, x, x) // 0 or NaN
		VADDPD(x, k, k)
		VMOVUPD(k, Mem{Base: at})
		ADDQ(U8(s.bytes), at)
	})
	leave()
}
