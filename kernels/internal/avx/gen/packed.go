package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The memory of a packed row starts with its non-zeros; a bit per column identifies them. Only
// AVX-512 has the instructions.
//
// Design note: compress and expand work in place, on a register that has just been loaded. On Zen
// 4 and 5 an expand waits for the former value of a destination that it zeroes, several cycles
// instead of one. A compress to memory is microcode, and an expand from memory also waits. Bits
// are read 64 at a time; a load and a count for each vector would take 1.5 times as long.

// aheadPacked is the number of edges by which a packed row is prefetched before its use; it has
// fewer lines than a dense row. Package avx has the same number.
const aheadPacked = 32

// bitsBytes is the distance in bytes between the bits of consecutive rows.
const bitsBytes = 16

// packRows generates the packing of rows of whole vectors, the last one masked. A NaN is a
// non-zero, and -0 is a zero.
func packRows(s isa) {
	routine("packRows"+s.name, "func(dst *float32, bits *uint64, x *float32, rows, full, lanes int) (kept int)",
		"Packs rows of x into the same rows of dst, which may be x, and returns the number of non-zeros.")
	mask := s.mask("lanes")
	dst, bits, x := arg("dst"), arg("bits"), arg("x")
	lanes, rows, kept := arg("lanes"), arg("rows"), GP64()
	zero := s.vec()
	s.zero(zero)
	XORQ(kept, kept)
	Label("row")
	full, to, word := arg("full"), GP64(), GP64()
	MOVQ(dst, to)
	MOVQ(bits, word)
	vector := func(mask Register) {
		v, some, n := s.vec(), K(), GP64()
		s.load(Mem{Base: x}, mask, v)
		VCMPPS(U8(4), zero, v, some) // not equal, or unordered
		KMOVW(some, n.As32())
		MOVW(n.As16(), Mem{Base: word})
		VCOMPRESSPS_Z(v, some, v)
		s.store(v, mask, Mem{Base: to})
		POPCNTL(n.As32(), n.As32())
		ADDQ(n, kept)
		LEAQ(Mem{Base: to, Index: n, Scale: 4}, to)
	}
	countdown("vector", "last", full, func() {
		vector(nil)
		ADDQ(U8(2), word)
		ADDQ(U8(s.bytes), x)
		ADDQ(U8(s.bytes), dst)
	})
	vector(mask)
	LEAQ(Mem{Base: x, Index: lanes, Scale: 4}, x)
	LEAQ(Mem{Base: dst, Index: lanes, Scale: 4}, dst)
	ADDQ(U8(bitsBytes), bits)
	DECQ(rows)
	JNZ(LabelRef("row"))
	Store(kept, Return("kept"))
	leave()
}

// gatherPacked generates gather for packed rows of N vectors.
func gatherPacked(s isa, vectors int) {
	g := &gathering{isa: s, packed: true, bytes: s.bytes}
	routine(fmt.Sprintf("gatherPacked%sx%d", s.name, vectors),
		"func(dst *float32, dstStride int, x *float32, stride int, bits *uint64, lines int, cols *uint32, base uint32, begin, end *int64, "+
			"rows, seen int, colScale, rowScale *float32, self int, add bool, lanes int)",
		"Sets each row r of dst to, or adds to it, rowScale[r] times the sum over cols[begin[r]:end[r]], and self+r unless self is "+
			"negative, of colScale[col] times the packed row col-base. It prefetches the given number of lines of a row, at least two.")
	g.last = s.mask("lanes")
	g.x, g.bits, g.colScale = arg("x"), arg("bits"), arg("colScale")
	g.run(vectors)
}

// placesOf returns twice the row of a column id, the index of its bits, and the address of its
// values.
func (g *gathering) placesOf(p Register) (values Register) {
	SUBL(place(Param("base")), p.(GPVirtual).As32())
	values = GP64()
	MOVQ(p, values)
	IMULQ(place(Param("stride")), values)
	ADDQ(g.x, values)
	ADDQ(p, p)
	return values
}

// prefetchPacked generates the prefetch of the packed row of column q.
func (g *gathering) prefetchPacked(name string, q Register) {
	values, lines := g.placesOf(q), arg("lines")
	PREFETCHT0(Mem{Base: g.bits, Index: q, Scale: 8})
	most := len(g.acc) + 1 // if a row does not start at a line
	for d := range most {
		if d >= 2 {
			CMPQ(lines, U8(d))
			JLE(LabelRef(name + "_fetched"))
		}
		PREFETCHT0(Mem{Base: values, Disp: 64 * d})
	}
	Label(name + "_fetched")
}

// unpack generates the addition of the packed row of column p.
func (g *gathering) unpack(p Register, scale VecVirtual) {
	from := g.placesOf(p)
	for first := 0; first < len(g.acc); first += 4 {
		b := GP64()
		MOVQ(Mem{Base: g.bits, Index: p, Scale: 8, Disp: 2 * first}, b)
		n := beginnings(b, min(len(g.acc)-first, 5))
		for k := range min(len(g.acc)-first, 4) {
			m := Mem{Base: from}
			if k > 0 {
				m.Index, m.Scale = n[k], 4
				SHRQ(U8(16), b)
			}
			some, v, acc := K(), g.vec(), g.acc[first+k]
			KMOVW(b.As32(), some)
			g.load(m, g.maskOf(first+k), v)
			VEXPANDPS_Z(v, some, v)
			if scale == nil {
				VADDPS(v, acc, acc)
			} else {
				VFMADD231PS(v, scale, acc)
			}
		}
		if first+4 < len(g.acc) {
			LEAQ(Mem{Base: from, Index: n[4], Scale: 4}, from)
		}
	}
}

// beginnings returns the number of bits of b that are set before vector k of 16 columns, for k
// from 1 up to count-1.
func beginnings(b GPVirtual, count int) []Register {
	n := []Register{nil, GP64(), GP64(), GP64(), GP64()}
	count64 := func(k int, of Register) { POPCNTQ(of, n[k]) }
	if count > 1 {
		MOVWLZX(b.As16(), n[1].(GPVirtual).As32())
		count64(1, n[1])
	}
	if count > 2 {
		MOVL(b.As32(), n[2].(GPVirtual).As32())
		count64(2, n[2])
	}
	if count > 3 {
		MOVQ(b, n[3])
		SHLQ(U8(16), n[3])
		count64(3, n[3])
	}
	if count > 4 {
		count64(4, b)
	}
	return n
}
