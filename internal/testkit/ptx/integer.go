package ptx

import (
	"math/bits"
	"unsafe"
)

// whole has the types of integer arithmetic.
type whole interface {
	int16 | int32 | int64 | uint16 | uint32 | uint64
}

// width returns the number of bits of a T.
func width[T number]() int { var x T; return 8 * int(unsafe.Sizeof(x)) }

// integer2 computes d = a op b, modulo 2^width. Where PTX is undefined: a division by zero gives all
// ones, and so does its remainder.
func integer2[T whole](w *warp, in *inst) {
	d, a, b := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b]
	switch in.op {
	case opAdd:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)+get[T](b, l))
		}
	case opSub:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)-get[T](b, l))
		}
	case opMul:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)*get[T](b, l))
		}
	case opMulHi:
		for _, l := range w.lanes {
			put(d, l, mulHi(get[T](a, l), get[T](b, l)))
		}
	case opDiv, opRem:
		for _, l := range w.lanes {
			put(d, l, divided(in.op, get[T](a, l), get[T](b, l)))
		}
	case opMin:
		for _, l := range w.lanes {
			put(d, l, min(get[T](a, l), get[T](b, l)))
		}
	case opMax:
		for _, l := range w.lanes {
			put(d, l, max(get[T](a, l), get[T](b, l)))
		}
	case opAnd:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)&get[T](b, l))
		}
	case opOr:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)|get[T](b, l))
		}
	case opXor:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)^get[T](b, l))
		}
	case opShl:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)<<get[uint32](b, l))
		}
	case opShr:
		for _, l := range w.lanes {
			put(d, l, get[T](a, l)>>get[uint32](b, l))
		}
	}
}

// divided returns the quotient or, for opRem, the remainder of x and y.
func divided[T whole](o op, x, y T) T {
	switch {
	case y == 0:
		return ^T(0)
	case o == opDiv:
		return x / y
	}
	return x % y
}

// mulHi returns the upper half of a b.
func mulHi[T whole](a, b T) T {
	if width[T]() < 64 {
		return T(int64(a) * int64(b) >> width[T]())
	}
	hi, _ := bits.Mul64(uint64(a), uint64(b))
	if a < 0 {
		hi -= uint64(b)
	}
	if b < 0 {
		hi -= uint64(a)
	}
	return T(hi)
}

// integer1 computes d = op a.
func integer1[T whole](w *warp, in *inst) {
	unary(w, in, func(x T) T {
		switch {
		case in.op == opNeg || in.op == opAbs && x < 0:
			return -x
		case in.op == opNot:
			return ^x
		case in.op == opCnot:
			return T(bit(x == 0))
		}
		return x
	})
}

// counted executes instructions whose result is a u32: the number of certain bits of a, or the
// position of a bit.
func counted[T uint32 | uint64 | int32 | int64](w *warp, in *inst) {
	unary(w, in, func(x T) uint32 {
		u := uint64(x) << (64 - width[T]()) >> (64 - width[T]())
		switch in.op {
		case opPopc:
			return uint32(bits.OnesCount64(u))
		case opClz:
			return uint32(width[T]() - bits.Len64(u))
		}
		if x < 0 {
			u = uint64(^x)
		}
		n := bits.Len64(u) - 1
		if in.cut && n >= 0 {
			n = width[T]() - 1 - n
		}
		return uint32(n)
	})
}

// reversed executes brev: the bits of a in reverse order.
func reversed[T uint32 | uint64](w *warp, in *inst) {
	unary(w, in, func(x T) T { return T(bits.Reverse64(uint64(x)) >> (64 - width[T]())) })
}

// highMad computes d = a b + c with the upper half of the product.
func highMad[T whole](w *warp, in *inst) {
	d, a, b, c := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	for _, l := range w.lanes {
		put(d, l, mulHi(get[T](a, l), get[T](b, l))+get[T](c, l))
	}
}

// wideMul computes d = a b in the type D, which has twice the width of S.
func wideMul[S, D whole](w *warp, in *inst) {
	d, a, b := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b]
	for _, l := range w.lanes {
		put(d, l, D(get[S](a, l))*D(get[S](b, l)))
	}
}

// mad computes d = a b + c in the type D: S, or a type of twice the width.
func mad[S, D whole](w *warp, in *inst) {
	d, a, b, c := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	for _, l := range w.lanes {
		put(d, l, D(get[S](a, l))*D(get[S](b, l))+get[D](c, l))
	}
}

// extract executes bfe: some bits of a from bit b on, extended by the highest one's sign if T is
// signed. c is the register of the length.
func extract[T int32 | uint32 | int64 | uint64](w *warp, in *inst) {
	d, a, b, c := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	n := width[T]()
	for _, l := range w.lanes {
		pos, length := int(get[uint8](b, l)), int(get[uint8](c, l))
		x := get[T](a, l)
		switch {
		case length == 0:
			x = 0
		case pos >= n:
			x >>= n - 1
		default:
			x >>= pos
			if gone := n - min(length, n-pos); gone > 0 && pos+length <= n {
				x = x << gone >> gone
			}
		}
		put(d, l, x)
	}
}

// insert executes bfi: b with some bits of a, from bit c on. list[0] is the register of their
// number.
func insert[T uint32 | uint64](w *warp, in *inst) {
	d, a, b, c, e := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b], &w.regs[in.c], &w.regs[in.list[0]]
	for _, l := range w.lanes {
		pos, length := get[uint8](c, l), get[uint8](e, l)
		mask := (T(1)<<length - 1) << pos
		put(d, l, get[T](b, l)&^mask|get[T](a, l)<<pos&mask)
	}
}

// permute executes prmt: four bytes of a and b, selected by the nibbles of c.
func permute(w *warp, in *inst) {
	d, a, b, c := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	for _, l := range w.lanes {
		both := uint64(get[uint32](a, l)) | uint64(get[uint32](b, l))<<32
		choice := get[uint32](c, l)
		var x uint32
		for i := range 4 {
			n := choice >> (4 * i)
			chosen := uint8(both >> (8 * (n & 7)))
			if n&8 != 0 {
				chosen = uint8(int8(chosen) >> 7)
			}
			x |= uint32(chosen) << (8 * i)
		}
		put(d, l, x)
	}
}

// funnel executes shf: a double word, b above a, shifted by c. imm selects the half of the result,
// op the direction; with cut, c is clamped to 32 instead of taken modulo 32.
func funnel(w *warp, in *inst) {
	d, a, b, c := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	for _, l := range w.lanes {
		both := uint64(get[uint32](a, l)) | uint64(get[uint32](b, l))<<32
		n := get[uint32](c, l)
		if in.cut {
			n = min(n, 32)
		} else {
			n &= 31
		}
		if in.op == opShl {
			put(d, l, uint32(both<<n>>32))
		} else {
			put(d, l, uint32(both>>n))
		}
	}
}

// lop3 executes any function of three bits, whose table is imm.
func lop3(w *warp, in *inst) {
	d, a, b, c := &w.regs[in.d], &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	for _, l := range w.lanes {
		x, y, z := get[uint32](a, l), get[uint32](b, l), get[uint32](c, l)
		var sum uint32
		for i := range 8 {
			if in.imm>>i&1 == 0 {
				continue
			}
			term := ^uint32(0)
			for bit, v := range [3]uint32{z, y, x} {
				if i>>bit&1 == 0 {
					v = ^v
				}
				term &= v
			}
			sum |= term
		}
		put(d, l, sum)
	}
}
