package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// ahead is the number of edges by which a row is prefetched before its use. Package avx has the
// same number.
const ahead = 16

// gather generates a tile of rows of a sparse product, up to 8 vectors wide. Accumulators stay in
// registers over all edges of a row.
//
// With half, rows of x are bfloat16, the upper half of a float32. The last vector of a row is then
// not masked and reads the elements after the row. With weighted, edges have weights, in an array
// parallel to the columns.
func gather(s isa, half, weighted bool, vectors int) {
	g := &gathering{isa: s, half: half, bytes: s.bytes}
	name, elem, shift, weight := "gather", "float32", 2, ""
	if half {
		name, elem, shift, g.bytes = "gatherHalf", "uint16", 1, s.bytes/2
	}
	if weighted {
		name, weight = name+"Weighted", "weights[edge] and "
	}
	routine(fmt.Sprintf("%s%sx%d", name, s.name, vectors), "func(dst *float32, dstStride int, x *"+elem+", stride int, cols *uint32, base "+
		"uint32, begin, end *int64, "+"rows, seen int, weights, colScale, rowScale *float32, self int, add bool, lanes int)",
		"Sets each row r of dst to, or adds to it, rowScale[r] times the sum over cols[begin[r]:end[r]], and self+r unless self is "+
			"negative, of "+weight+"colScale[col] times the tile of row col-base.")
	g.last = s.mask("lanes")
	g.x, g.stride = arg("x"), arg("stride")
	before := GP64()
	Load(Param("base"), before.As32())
	IMULQ(g.stride, before)
	SUBQ(before, g.x) // to the row of column 0
	g.colScale = arg("colScale")
	g.lastByte(vectors, shift)
	if weighted {
		g.beside = arg("weights")
		SUBQ(place(Param("cols")), g.beside)
	}
	g.run(vectors)
}

// lastByte computes the offset of a tile's last byte, or 0 if rows are whole cache lines. Other
// rows may touch one cache line more than their length implies.
func (g *gathering) lastByte(vectors, shift int) {
	g.end = arg("lanes")
	SHLQ(U8(shift), g.end)
	ADDQ(I32((vectors-1)*g.bytes-1), g.end)
	TESTQ(U32(63), g.stride)
	JNZ(LabelRef("ragged"))
	XORQ(g.end, g.end)
	Label("ragged")
}

// run generates the loop over rows and the end of the routine.
func (g *gathering) run(vectors int) {
	s := g.isa
	for range vectors {
		g.acc = append(g.acc, s.vec())
	}
	row := GP64()
	XORQ(row, row)

	Label("row")
	g.edges(row)
	for _, a := range g.acc {
		s.zero(a)
	}
	TESTQ(g.colScale, g.colScale)
	JZ(LabelRef("plain"))
	g.sum("scaled", row, true)
	Label("plain")
	g.sum("plain", row, false)

	Label("scale")
	rowScale := arg("rowScale")
	TESTQ(rowScale, rowScale)
	JZ(LabelRef("write"))
	factor := s.vec()
	VBROADCASTSS(Mem{Base: rowScale, Index: row, Scale: 4}, factor)
	for _, a := range g.acc {
		VMULPS(factor, a, a)
	}
	Label("write")
	dst := arg("dstStride")
	IMULQ(row, dst)
	base := arg("dst")
	ADDQ(base, dst)
	finish(s, g.acc, func(i int) Mem { return Mem{Base: dst, Disp: s.bytes * i} }, g.maskOf, "done")
	Label("done")
	INCQ(row)
	rows := arg("rows")
	CMPQ(row, rows)
	JLT(LabelRef("row"))
	leave()
}

// gathering contains the shared state of the routine's parts.
type gathering struct {
	isa
	half, packed        bool
	bytes               int // of a vector in x
	last, end           Register
	x, stride, colScale Register
	bits                Register // of packed rows
	acc                 []VecVirtual
	cols, looking, rest Register // of the row: remaining edges that prefetch, and that do not
	beside              Register // distance of an edge's weight from its column; nil without weights
}

// edges generates the lookup of a row's edges. It prefetches for later edges, including those of
// later rows.
func (g *gathering) edges(row Register) {
	begin, end := arg("begin"), arg("end")
	lo, n, zero := GP64(), GP64(), GP64()
	MOVQ(Mem{Base: begin, Index: row, Scale: 8}, lo)
	MOVQ(Mem{Base: end, Index: row, Scale: 8}, n)
	SUBQ(lo, n)
	looking := arg("seen")
	SUBQ(lo, looking)
	XORQ(zero, zero)
	CMPQ(looking, zero)
	CMOVQLT(zero, looking)
	CMPQ(n, looking)
	CMOVQLT(n, looking)
	SUBQ(looking, n)
	cols := arg("cols")
	LEAQ(Mem{Base: cols, Index: lo, Scale: 4}, cols)
	g.cols, g.looking, g.rest = cols, looking, n
}

// sum accumulates a row, and jumps to its scale.
func (g *gathering) sum(name string, row Register, scaled bool) {
	self := arg("self")
	TESTQ(self, self)
	JL(LabelRef(name + "_ahead"))
	ADDQ(row, self)
	g.add(self, scaled)
	loop(name+"_ahead", name+"_rest", g.looking, func() {
		p := g.col(0)
		g.lookAhead(name)
		g.edge(p, scaled)
		ADDQ(U8(4), g.cols)
	})
	loop(name+"_rest", "scale", g.rest, func() {
		g.edge(g.col(0), scaled)
		ADDQ(U8(4), g.cols)
	})
}

// lookAhead prefetches the row of a later edge.
func (g *gathering) lookAhead(name string) {
	if g.packed {
		g.prefetchPacked(name, g.col(aheadPacked))
		return
	}
	q := g.col(ahead)
	IMULQ(g.stride, q)
	g.prefetch(name, q)
}

// prefetch generates the prefetch of the row at the offset q.
func (g *gathering) prefetch(name string, q Register) {
	for d := 0; d < len(g.acc)*g.bytes; d += 64 {
		PREFETCHT0(Mem{Base: g.x, Index: q, Scale: 1, Disp: d})
	}
	TESTQ(g.end, g.end)
	JZ(LabelRef(name + "_whole"))
	ADDQ(g.end, q)
	PREFETCHT0(Mem{Base: g.x, Index: q, Scale: 1})
	Label(name + "_whole")
}

// col reads a column id.
func (g *gathering) col(at int) Register {
	p := GP64()
	MOVL(Mem{Base: g.cols, Disp: 4 * at}, p.As32())
	return p
}

// address replaces a column id by the address of its row.
func (g *gathering) address(p Register) {
	IMULQ(g.stride, p)
	ADDQ(g.x, p)
}

// add accumulates the row of column p, and overwrites p.
func (g *gathering) add(p Register, scaled bool) {
	if !scaled {
		g.accumulate(p, nil)
		return
	}
	scale := g.vec()
	VBROADCASTSS(Mem{Base: g.colScale, Index: p, Scale: 4}, scale)
	g.accumulate(p, scale)
}

// edge generates add for an edge's column, with the edge's weight.
func (g *gathering) edge(p Register, scaled bool) {
	if g.beside == nil {
		g.add(p, scaled)
		return
	}
	scale := g.vec()
	VBROADCASTSS(Mem{Base: g.cols, Index: g.beside, Scale: 1}, scale)
	if scaled {
		of := g.vec()
		VBROADCASTSS(Mem{Base: g.colScale, Index: p, Scale: 4}, of)
		VMULPS(of, scale, scale)
	}
	g.accumulate(p, scale)
}

// accumulate adds scale times the row of column p, or with a nil scale the row.
func (g *gathering) accumulate(p Register, scale VecVirtual) {
	if g.packed {
		g.unpack(p, scale)
		return
	}
	g.address(p)
	for i, acc := range g.acc {
		m := Mem{Base: p, Disp: g.bytes * i}
		switch {
		case g.half:
			v := g.vec()
			VPMOVZXWD(m, v)
			VPSLLD(U8(16), v, v)
			if scale != nil {
				VFMADD231PS(v, scale, acc)
			} else {
				VADDPS(v, acc, acc)
			}
		case scale != nil:
			g.fmaFrom(m, scale, g.maskOf(i), acc)
		default:
			g.addFrom(m, g.maskOf(i), acc)
		}
	}
}

func (g *gathering) maskOf(i int) Register { return onlyLast(g.last, i, len(g.acc)) }
