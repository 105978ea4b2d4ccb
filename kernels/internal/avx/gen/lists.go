package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A row in lists is a record of four values, their columns of 16 bits, and the number of the next
// record, 0 if there is none. Unused values are zeros, with distinct columns.
//
// Design note: most neighbours of a row have equally many records, so that the branch to the next
// record is predicted. The end of a loop over the values of a row is not, and the loop takes
// twice as long. A repeated column waits for the store before it. Records are prefetched further
// ahead than dense rows, which have eight lines.

// aheadLists is the number of edges by which a record is prefetched before its use. Package avx has
// the same number.
const aheadLists = 16

// Offsets in a record, in bytes.
const (
	recordShift = 5
	columnsAt   = 16
	nextAt      = 24
)

// lists has the registers of one row of a gather.
type lists struct {
	records, base, acc, cols, scales GPVirtual
	one                              VecVirtual
}

// gatherLists generates the sum of the records of a row's columns in acc, which may be dst.
func gatherLists(s isa) {
	routine("gatherLists"+s.name, "func(dst, acc *float32, full, lanes int, records *uint64, cols *uint32, base uint32, ahead, rest int, "+
		"colScale *float32, scale float32, self int, add bool)",
		"Sets dst to, or adds to it, scale times the sum over ahead+rest columns, and self unless it is negative, of colScale[col] times "+
			"the row col-base. The first ahead columns prefetch later rows. acc is dst, or a buffer if add.")
	mask := s.mask("lanes")
	l := lists{records: GP64(), base: GP64(), acc: GP64(), cols: GP64(), scales: GP64(), one: XMM()}
	load := func(name string, r GPVirtual) { Load(Param(name), r) }
	load("records", l.records)
	Load(Param("base"), l.base.As32())
	load("acc", l.acc)
	load("cols", l.cols)
	load("colScale", l.scales)
	bits := GP32()
	MOVL(U32(0x3f800000), bits)
	VMOVD(bits, l.one)
	l.clear(s, mask)

	self := GP64()
	load("self", self)
	TESTQ(self, self)
	JS(LabelRef("edges"))
	l.add("self", self)
	Label("edges")
	l.loop("ahead", true)
	l.loop("rest", false)
	l.finish(s, mask)
	leave()
}

// clear sets the sums to zero.
func (l *lists) clear(s isa, mask Register) {
	zero, to, full := s.vec(), GP64(), arg("full")
	s.zero(zero)
	MOVQ(l.acc, to)
	countdown("clear", "cleared", full, func() {
		s.store(zero, nil, Mem{Base: to})
		ADDQ(U8(s.bytes), to)
	})
	s.store(zero, mask, Mem{Base: to})
}

// loop generates the addition of columns. The parameter called name is their number.
func (l *lists) loop(name string, prefetch bool) {
	countdown(name, name+"_end", arg(name), func() {
		if prefetch {
			q := GP64()
			MOVL(Mem{Base: l.cols, Disp: 4 * aheadLists}, q.As32())
			PREFETCHT0(l.record(q))
		}
		p := GP64()
		MOVL(Mem{Base: l.cols}, p.As32())
		l.add(name, p)
		ADDQ(U8(4), l.cols)
	})
}

// record replaces a column id by the address of its first record.
func (l *lists) record(p GPVirtual) Mem {
	SUBL(l.base.As32(), p.As32())
	SHLQ(U8(recordShift), p)
	return Mem{Base: l.records, Index: p, Scale: 1}
}

// add generates the addition of a column's row. It overwrites the id.
func (l *lists) add(name string, p GPVirtual) {
	scale := XMM()
	VMOVAPS(l.one, scale)
	TESTQ(l.scales, l.scales)
	JZ(LabelRef(name + "_scaled"))
	VMOVSS(Mem{Base: l.scales, Index: p, Scale: 4}, scale)
	Label(name + "_scaled")
	l.record(p)
	Label(name + "_record")
	ADDQ(l.records, p)
	for i := range 4 {
		c, v := GP64(), XMM()
		MOVWLZX(Mem{Base: p, Disp: columnsAt + 2*i}, c.As32())
		VMOVSS(Mem{Base: l.acc, Index: c, Scale: 4}, v)
		VFMADD231SS(Mem{Base: p, Disp: 4 * i}, scale, v)
		VMOVSS(v, Mem{Base: l.acc, Index: c, Scale: 4})
	}
	MOVQ(Mem{Base: p, Disp: nextAt}, p)
	SHLQ(U8(recordShift), p)
	JNZ(LabelRef(name + "_record"))
}

// finish generates dst = scale times the sums.
func (l *lists) finish(s isa, mask Register) {
	to, full, scale, flag := arg("dst"), arg("full"), s.vec(), Load(Param("add"), GP8())
	VBROADCASTSS(place(Param("scale")), scale)
	vector := func(mask Register, name string) {
		v := s.loaded(Mem{Base: l.acc}, mask)
		VMULPS(v, scale, v)
		TESTB(flag, flag)
		JZ(LabelRef(name))
		s.addFrom(Mem{Base: to}, mask, v)
		Label(name)
		s.store(v, mask, Mem{Base: to})
	}
	countdown("finish", "last", full, func() {
		vector(nil, "store")
		ADDQ(U8(s.bytes), l.acc)
		ADDQ(U8(s.bytes), to)
	})
	vector(mask, "store_last")
}
