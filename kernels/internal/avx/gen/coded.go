package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Decoders of columns. Package kernels describes the format (coded.go).

// Layout of the table of classes, and of the table of control bytes, which has the length of a group.
const (
	classBytes  = 64
	classShift  = 16 // offset of the shifts; the bytes of each lane are first
	classMask   = 32
	classWidth  = 48 // offset of the width, and 4 bytes later of the bytes of four gaps
	widestClass = 15
)

func codedWidth(class int) int {
	if class == widestClass {
		return 32
	}
	return 2 * class
}

// classes writes the table of classes.
func classes() Mem {
	table := GLOBL("classes", RODATA|NOPTR)
	for class := range 16 {
		width, at := codedWidth(class), classBytes*class
		for lane := range 4 {
			var from uint32
			for b := range 4 {
				from |= uint32(lane*width/8+b) & 15 << (8 * b) // masked if it is behind the 16 loaded bytes
			}
			DATA(at+4*lane, U32(from))
		}
		for lane := range 4 {
			DATA(at+classShift+4*lane, U32(lane*width%8))
		}
		for lane := range 4 {
			DATA(at+classMask+4*lane, U32(1<<width-1))
		}
		DATA(at+classWidth, U32(width))
		DATA(at+classWidth+4, U32(width/2))
		DATA(at+classWidth+8, U64(0))
	}
	return table
}

// lengths writes the table of the lengths of groups.
func lengths() Mem {
	table := GLOBL("lengths", RODATA|NOPTR)
	for control := range 256 {
		DATA(control, U8(1+codedWidth(control&15)/2+codedWidth(control>>4)/2))
	}
	return table
}

// decoder contains the registers of a decoder.
type decoder struct {
	code             Register // of the current group
	classes, lengths Register
	last             VecVirtual // 7 in each lane
	previous         VecVirtual // column before the group, in all lanes
	low, high        GPVirtual  // entries of the classes of the group
	control          GPVirtual
}

func newDecoder(table, length Mem, code Register) *decoder {
	d := &decoder{code: code, classes: GP64(), lengths: GP64(), last: YMM(), previous: YMM(), low: GP64(), high: GP64(), control: GP64()}
	LEAQ(table, d.classes)
	LEAQ(length, d.lengths)
	broadcastBits(7, d.last)
	return d
}

// group decodes the group at code to a vector of columns, and sets previous to the last of eight.
func (d *decoder) group() VecVirtual {
	low, high := d.low, d.high
	MOVBLZX(Mem{Base: d.code}, d.control.As32())
	MOVL(d.control.As32(), low.As32())
	MOVL(d.control.As32(), high.As32())
	ANDL(U32(15), low.As32())
	SHLL(U8(6), low.As32())
	ANDL(U32(0xf0), high.As32())
	SHLL(U8(2), high.As32())
	ADDQ(d.classes, low)
	ADDQ(d.classes, high)
	bytes := GP64()
	MOVL(Mem{Base: low, Disp: classWidth + 4}, bytes.As32())
	pair := func(disp int) VecVirtual {
		x, y := XMM(), YMM()
		VMOVDQU(Mem{Base: low, Disp: disp}, x)
		VINSERTI128(U8(1), Mem{Base: high, Disp: disp}, x.AsY(), y)
		return y
	}
	x, v := XMM(), YMM()
	VMOVDQU(Mem{Base: d.code, Disp: 1}, x)
	VINSERTI128(U8(1), Mem{Base: d.code, Disp: 1, Index: bytes, Scale: 1}, x.AsY(), v)
	VPSHUFB(pair(0), v, v)
	VPSRLVD(pair(classShift), v, v)
	VPAND(pair(classMask), v, v)
	// Each gap lacks 1.
	one, shifted := YMM(), YMM()
	VPCMPEQD(one, one, one)
	VPSUBD(one, v, v)
	VPSLLDQ(U8(4), v, shifted)
	VPADDD(shifted, v, v)
	VPSLLDQ(U8(8), v, shifted)
	VPADDD(shifted, v, v)
	half := YMM()
	VPERM2I128(U8(0x08), v, v, half) // zeros, and the low half
	VPSHUFD(U8(0xff), half, half)
	VPADDD(half, v, v)
	sum, columns := YMM(), YMM()
	VPERMD(v, d.last, sum)
	VPADDD(d.previous, v, columns)
	VPADDD(sum, d.previous, d.previous)
	return columns
}

// next moves code behind a whole group.
func (d *decoder) next() {
	n := GP64()
	MOVBLZX(Mem{Base: d.lengths, Index: d.control, Scale: 1}, n.As32())
	ADDQ(n, d.code)
}

// nextPart moves code behind a group of n gaps, at most eight. It overwrites n.
func (d *decoder) nextPart(n GPVirtual) {
	first, rest, width, zero := GP64(), GP64(), GP64(), GP64()
	XORQ(zero, zero)
	MOVQ(U32(4), first)
	MOVQ(n, rest)
	SUBQ(first, rest)
	CMOVQLT(zero, rest)
	CMPQ(n, first)
	CMOVQLT(n, first)
	for _, part := range []struct{ count, class GPVirtual }{{first, d.low}, {rest, d.high}} {
		MOVL(Mem{Base: part.class, Disp: classWidth}, width.As32())
		IMULQ(width, part.count)
		ADDQ(U8(7), part.count)
		SHRQ(U8(3), part.count)
		ADDQ(part.count, d.code)
	}
	INCQ(d.code)
}

// decodeRows generates the decoder of whole rows.
func decodeRows(table, length Mem) {
	routine("decodeRows", "func(dst *uint32, code *byte, begin, end *int64, rows int, near uint32) (used int)",
		"Decodes the columns of rows, at least 1, whose numbers start at near. It writes up to eight more, and "+
			"returns the bytes of their code.")
	dst, code, rows := arg("dst"), arg("code"), arg("rows")
	begin, end := arg("begin"), arg("end")
	near := Load(Param("near"), GP32())
	d := newDecoder(table, length, code)
	n := GP64()
	Label("row")
	MOVQ(Mem{Base: end}, n)
	SUBQ(Mem{Base: begin}, n)
	JLE(LabelRef("next"))
	head, tag, sign := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: code}, head)
	MOVL(head.As32(), tag.As32())
	ANDL(U32(3), tag.As32())
	LEAQ(Mem{Base: code, Index: tag, Scale: 1, Disp: 2}, code)
	SHLL(U8(3), tag.As32())
	ADDL(U8(16), tag.As32())
	BZHIQ(tag, head, head)
	SHRQ(U8(2), head)
	MOVL(head.As32(), sign.As32())
	ANDL(U32(1), sign.As32())
	NEGL(sign.As32())
	SHRQ(U8(1), head)
	XORL(sign.As32(), head.As32())
	ADDL(near, head.As32())
	MOVL(head.As32(), Mem{Base: dst})
	ADDQ(U8(4), dst)
	broadcastWord(head.As32(), d.previous)
	DECQ(n)
	JZ(LabelRef("next"))
	Label("group")
	columns := d.group()
	VMOVDQU(columns, Mem{Base: dst})
	CMPQ(n, U8(8))
	JLT(LabelRef("part"))
	d.next()
	ADDQ(U8(32), dst)
	SUBQ(U8(8), n)
	JNZ(LabelRef("group"))
	JMP(LabelRef("next"))
	Label("part")
	LEAQ(Mem{Base: dst, Index: n, Scale: 4}, dst)
	d.nextPart(n)
	Label("next")
	ADDQ(U8(8), begin)
	ADDQ(U8(8), end)
	INCL(near)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	used := arg("code")
	SUBQ(used, code)
	Store(code, Return("used"))
	RET()
}

// decodeBelow generates the decoder of the columns of a row in a block of sources.
func decodeBelow(table, length Mem) {
	routine("decodeBelow", "func(dst *uint32, code *byte, previous *uint32, lane, n int, bound uint32, next *byte) (count, used int)",
		"Decodes the columns below bound of n gaps, at least 1, the first lane of them excluded, and returns their number. "+
			"It writes up to eight more, moves previous and used to the group with the first other column, and prefetches next.")
	ordinals := GLOBL("ordinals", RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(i))
	}
	dst, code := arg("dst"), arg("code")
	next := arg("next")
	PREFETCHT0(Mem{Base: next})
	PREFETCHT0(Mem{Base: next, Disp: 64})
	d := newDecoder(table, length, code)
	at := arg("previous")
	VPBROADCASTD(Mem{Base: at}, d.previous)
	bound, start, lane, n := YMM(), YMM(), arg("lane"), arg("n")
	broadcastWord(Load(Param("bound"), GP32()), bound)
	broadcastWord(lane.As32(), start)
	VPADDD(ordinals, start, start)
	first := GP64()
	MOVQ(dst, first)
	before, larger, rotated := YMM(), YMM(), YMM()
	beyond, limit, have := GP64(), GP64(), GP64()

	Label("group")
	VMOVDQA(d.previous, before)
	columns := d.group()
	VPMAXUD(columns, bound, larger)
	VPCMPEQD(columns, larger, larger)
	VMOVMSKPS(larger, beyond.As32())
	// Lanes from n on are not of the row.
	MOVQ(U32(8), have)
	CMPQ(n, have)
	CMOVQLT(n, have)
	MOVQ(I32(-1), limit)
	SHLXQ(have, limit, limit)
	ORQ(limit, beyond)
	TZCNTQ(beyond, beyond)
	VPERMD(columns, start, rotated)
	VMOVDQU(rotated, Mem{Base: dst})
	MOVQ(beyond, have)
	SUBQ(lane, have)
	LEAQ(Mem{Base: dst, Index: have, Scale: 4}, dst)
	CMPQ(beyond, U8(8))
	JNE(LabelRef("done"))
	SUBQ(U8(8), n)
	JZ(LabelRef("done"))
	d.next()
	XORQ(lane, lane)
	VMOVDQU(ordinals, start)
	JMP(LabelRef("group"))

	Label("done")
	at = arg("previous")
	VMOVD(before.AsX(), Mem{Base: at})
	VZEROUPPER()
	SUBQ(first, dst)
	SHRQ(U8(2), dst)
	Store(dst, Return("count"))
	used := arg("code")
	SUBQ(used, code)
	Store(code, Return("used"))
	RET()
}
