// Command gen writes the assembly of package avx: run "go generate" there.
//
// Every routine comes in two versions that do the same operations in the same
// order: AVX-512 with 16 lanes and mask registers, AVX2 with 8 lanes and masks
// in vectors. Only the last vector of a row is masked, and masked lanes are
// neither read nor written.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// isa is one of the two instruction sets.
type isa struct {
	name  string
	bytes int // of a vector
	wide  bool
}

var sets = []isa{{"512", 64, true}, {"256", 32, false}}

func (s isa) vec() VecVirtual {
	if s.wide {
		return ZMM()
	}
	return YMM()
}

func (s isa) zero(v VecVirtual) {
	if s.wide {
		VPXORD(v, v, v)
		return
	}
	VXORPS(v, v, v)
}

// mask turns the parameter of that name, the number of lanes of the last
// vector, into a mask. For AVX2 it is a window into eight words of ones
// followed by eight of zeros.
func (s isa) mask(name string) Register {
	lanes := Load(Param(name), GP64()).(GPVirtual)
	if s.wide {
		count := GP64()
		MOVQ(lanes, RCX)
		MOVQ(U32(1), count)
		SHLQ(CL, count)
		DECQ(count)
		k := K()
		KMOVW(count.As32(), k)
		return k
	}
	window := GP64()
	LEAQ(NewDataAddr(Symbol{Name: "ones", Static: true}, 32), window)
	SHLQ(U8(2), lanes)
	SUBQ(lanes, window)
	m := YMM()
	VMOVDQU(Mem{Base: window}, m)
	return m
}

// load reads a vector, masked lanes as zero.
func (s isa) load(m Mem, mask Register, dst VecVirtual) {
	switch {
	case mask == nil:
		VMOVUPS(m, dst)
	case s.wide:
		VMOVUPS_Z(m, mask, dst)
	default:
		VMASKMOVPS(m, mask, dst)
	}
}

func (s isa) store(src VecVirtual, mask Register, m Mem) {
	switch {
	case mask == nil:
		VMOVUPS(src, m)
	case s.wide:
		VMOVUPS(src, mask, m)
	default:
		VMASKMOVPS(src, mask, m)
	}
}

// addFrom is acc += m.
func (s isa) addFrom(m Mem, mask Register, acc VecVirtual) {
	switch {
	case mask == nil:
		VADDPS(m, acc, acc)
	case s.wide:
		VADDPS(m, acc, mask, acc)
	default:
		t := YMM()
		VMASKMOVPS(m, mask, t)
		VADDPS(t, acc, acc)
	}
}

// fmaFrom is acc += scale*m.
func (s isa) fmaFrom(m Mem, scale VecVirtual, mask Register, acc VecVirtual) {
	switch {
	case mask == nil:
		VFMADD231PS(m, scale, acc)
	case s.wide:
		VFMADD231PS(m, scale, mask, acc)
	default:
		t := YMM()
		VMASKMOVPS(m, mask, t)
		VFMADD231PS(t, scale, acc)
	}
}

func main() {
	ConstraintExpr("amd64")
	GLOBL("ones", RODATA|NOPTR)
	for i := range 16 {
		v := U32(0)
		if i < 8 {
			v = 0xffffffff
		}
		DATA(4*i, v)
	}
	for _, s := range sets {
		for vectors := 1; vectors <= 8; vectors++ {
			gather(s, vectors)
		}
		heights := []int{6, 4, 2, 1}
		if s.wide {
			heights = []int{12, 8, 4, 2, 1}
		}
		for _, h := range heights {
			for vectors := 1; vectors <= 2; vectors++ {
				tile(s, h, vectors)
			}
		}
	}
	for _, s := range sets {
		activate(s)
		gradient(s)
		addRow(s)
	}
	Generate()
}

// ahead is how many edges before its use a row is prefetched.
const ahead = 12

// gather writes a tile of one row of a sparse product, up to 8 vectors wide,
// with its accumulators in registers over all edges.
func gather(s isa, vectors int) {
	TEXT(fmt.Sprintf("gather%sx%d", s.name, vectors), NOSPLIT,
		"func(dst, x *float32, stride int, cols *uint32, base uint32, n int, colScale *float32, rowScale float32, add bool, lanes int)")
	Doc("Sets or adds rowScale times the sum over n edges of colScale[col] times the tile of row col-base.")
	Pragma("noescape")
	mask := s.mask("lanes")
	x, stride := Load(Param("x"), GP64()), Load(Param("stride"), GP64())
	cols, base := Load(Param("cols"), GP64()), Load(Param("base"), GP32())
	n, colScale := Load(Param("n"), GP64()), Load(Param("colScale"), GP64())

	acc := make([]VecVirtual, vectors)
	for i := range acc {
		acc[i] = s.vec()
		s.zero(acc[i])
	}
	maskOf := func(i int) Register {
		if i == vectors-1 {
			return mask
		}
		return nil
	}
	row := func(at int) GPVirtual {
		p := GP64()
		MOVL(Mem{Base: cols, Disp: 4 * at}, p.As32())
		return p
	}
	address := func(p GPVirtual) {
		SUBL(base, p.As32())
		IMULQ(stride, p)
		ADDQ(x, p)
	}
	edge := func(scaled, prefetch bool) {
		p := row(0)
		scale := s.vec()
		if scaled {
			VBROADCASTSS(Mem{Base: colScale, Index: p, Scale: 4}, scale)
		}
		address(p)
		if prefetch {
			q := row(ahead)
			address(q)
			for d := 0; d < vectors*s.bytes; d += 64 {
				PREFETCHT0(Mem{Base: q, Disp: d})
			}
		}
		for i := range acc {
			m := Mem{Base: p, Disp: s.bytes * i}
			if scaled {
				s.fmaFrom(m, scale, maskOf(i), acc[i])
			} else {
				s.addFrom(m, maskOf(i), acc[i])
			}
		}
		ADDQ(U8(4), cols)
	}
	loop := func(name string, scaled bool) {
		Label(name + "_ahead")
		CMPQ(n, U8(ahead))
		JLE(LabelRef(name + "_rest"))
		edge(scaled, true)
		DECQ(n)
		JMP(LabelRef(name + "_ahead"))
		Label(name + "_rest")
		TESTQ(n, n)
		JZ(LabelRef("scale"))
		edge(scaled, false)
		DECQ(n)
		JMP(LabelRef(name + "_rest"))
	}
	TESTQ(n, n)
	JZ(LabelRef("write"))
	TESTQ(colScale, colScale)
	JZ(LabelRef("plain_ahead"))
	loop("scaled", true)
	loop("plain", false)

	Label("scale")
	rowScale := s.vec()
	addr, err := Param("rowScale").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(addr.Addr, rowScale)
	for i := range acc {
		VMULPS(rowScale, acc[i], acc[i])
	}
	Label("write")
	dst := Load(Param("dst"), GP64())
	finish(s, acc, func(i int) Mem { return Mem{Base: dst, Disp: s.bytes * i} }, maskOf, "done")
	Label("done")
	VZEROUPPER()
	RET()
}

// finish stores accumulators, after adding what is there if "add" says so.
func finish(s isa, acc []VecVirtual, place func(i int) Mem, maskOf func(i int) Register, label string) {
	add := Load(Param("add"), GP8())
	TESTB(add, add)
	JZ(LabelRef(label + "_store"))
	for i := range acc {
		s.addFrom(place(i), maskOf(i), acc[i])
	}
	Label(label + "_store")
	for i := range acc {
		s.store(acc[i], maskOf(i), place(i))
	}
}

// tile writes a block of a dense product: height rows of one or two vectors,
// accumulated in registers over all of k.
func tile(s isa, height, vectors int) {
	TEXT(fmt.Sprintf("tile%sx%dx%d", s.name, height, vectors), NOSPLIT,
		"func(c *float32, ldc int, a *float32, rs, cs int, b *float32, ldb, k int, add bool, lanes int)")
	Doc("Sets or adds to a block of c the sum over k of a's column times b's row; strides are in bytes.")
	Pragma("noescape")
	mask := s.mask("lanes")
	rs, cs := Load(Param("rs"), GP64()), Load(Param("cs"), GP64())
	b, ldb, k := Load(Param("b"), GP64()), Load(Param("ldb"), GP64()), Load(Param("k"), GP64())

	// Three rows share a base: an index can be scaled by 1 and 2.
	bases := []GPVirtual{Load(Param("a"), GP64()).(GPVirtual)}
	for len(bases) < (height+2)/3 {
		next := GP64()
		last := bases[len(bases)-1]
		LEAQ(Mem{Base: last, Index: rs, Scale: 2}, next)
		ADDQ(rs, next)
		bases = append(bases, next)
	}
	element := func(i int) Mem {
		m := Mem{Base: bases[i/3]}
		if i%3 > 0 {
			m.Index, m.Scale = rs, uint8(i%3)
		}
		return m
	}
	acc := make([]VecVirtual, height*vectors)
	for i := range acc {
		acc[i] = s.vec()
		s.zero(acc[i])
	}
	maskOf := func(i int) Register {
		if i%vectors == vectors-1 {
			return mask
		}
		return nil
	}
	Label("loop")
	row := make([]VecVirtual, vectors)
	for j := range row {
		row[j] = s.vec()
		s.load(Mem{Base: b, Disp: s.bytes * j}, maskOf(j), row[j])
	}
	for i := range height {
		x := s.vec()
		VBROADCASTSS(element(i), x)
		for j := range row {
			VFMADD231PS(row[j], x, acc[i*vectors+j])
		}
	}
	for _, base := range bases {
		ADDQ(cs, base)
	}
	ADDQ(ldb, b)
	DECQ(k)
	JNZ(LabelRef("loop"))

	c, ldc := Load(Param("c"), GP64()), Load(Param("ldc"), GP64())
	for i := range height {
		part := acc[i*vectors : (i+1)*vectors]
		finish(s, part, func(j int) Mem { return Mem{Base: c, Disp: s.bytes * j} }, maskOf, fmt.Sprintf("row%d", i))
		if i < height-1 {
			ADDQ(ldc, c)
		}
	}
	VZEROUPPER()
	RET()
}
