package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// sift generates the copy of the non-zeros that dropout retains. A word is drawn for each, first
// for the even lanes, then for the odd ones.
func sift(s isa) {
	routine("sift"+s.name,
		"func(draw, ids, cols, index *uint32, vals *float32, keptIndex *uint32, keptVals *float32, bits *uint8, full, lanes int)",
		"Copies the elements of index and vals that the words of ids and cols retain, vals scaled, and sets a bit for "+
			"each. It writes whole vectors.")
	p := newPhilox(s)
	oddWords := s.odd(0xaa)
	ids, cols, index, vals := arg("ids"), arg("cols"), arg("index"), arg("vals")
	keptIndex, keptVals := arg("keptIndex"), arg("keptVals")
	bits, n := arg("bits"), GP64()
	XORQ(n, n)
	places := compressions(s)
	eachVector(s, func(at func(Register) Mem, mask Register) {
		id, col := s.loaded(at(ids), mask), s.loaded(at(cols), mask)
		word := p.word(id, col)
		VPSRLQ(U8(32), id, id)
		VPSRLQ(U8(32), col, col)
		oddWords.low(p.word(id, col), word)
		keep := p.keeps(word, mask)

		i, v := s.loaded(at(index), mask), s.loaded(at(vals), mask)
		VMULPS(p.scale(), v, v)
		b := GP64()
		if s.wide {
			KMOVW(keep, b.As32())
			MOVW(b.As16(), Mem{Base: bits})
		} else {
			VMOVMSKPS(keep, b.As32())
			MOVB(b.As8(), Mem{Base: bits})
		}
		ADDQ(U8(s.bytes/32), bits)
		count := s.compress(keep, b, places, []VecVirtual{i, v})
		s.store(i, nil, Mem{Base: keptIndex, Index: n, Scale: 4})
		s.store(v, nil, Mem{Base: keptVals, Index: n, Scale: 4})
		ADDQ(count, n)
	})
}

// compressions returns the address of a table for AVX2. For each byte of bits it contains the
// source lanes of a compression.
func compressions(s isa) Register {
	if s.wide {
		return nil
	}
	table := GLOBL("compressions", RODATA|NOPTR)
	for b := range 256 {
		var entry uint64
		to := 0
		for lane := range 8 {
			if b>>lane&1 != 0 {
				entry |= uint64(lane) << (8 * to)
				to++
			}
		}
		DATA(8*b, U64(entry))
	}
	address := GP64()
	LEAQ(table, address)
	return address
}

// compress packs the lanes of vectors that the bits b select, and returns their number. keep has the same bits in
// a mask register; AVX2 ignores it.
func (s isa) compress(keep Register, b GPVirtual, table Register, vectors []VecVirtual) Register {
	count, from := GP64(), YMM()
	if !s.wide {
		VPMOVZXBD(Mem{Base: table, Index: b, Scale: 8}, from)
	}
	for _, v := range vectors {
		if s.wide {
			VPCOMPRESSD_Z(v, keep, v)
		} else {
			VPERMD(v, from, v)
		}
	}
	POPCNTL(b.As32(), count.As32())
	return count
}
