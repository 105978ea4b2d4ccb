// Command gen writes the assembly of package avx: run "go generate" there.
//
// Each routine has two versions that do the same operations in the same order: AVX-512 with 16
// lanes and mask registers, AVX2 with 8 lanes and masks in vectors. Only the last vector of a row
// is masked, and masked lanes are neither read nor written.
package main

import (
	"flag"
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
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

// mask returns the mask of the last vector, whose number of lanes is the parameter called name.
func (s isa) mask(name string) Register {
	return s.maskOf(arg(name))
}

// maskOf returns a mask of the first lanes and overwrites lanes, their number. For AVX2 the mask
// is a window into eight words of ones followed by eight of zeros.
func (s isa) maskOf(lanes GPVirtual) Register {
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

// load generates the load of a vector, with zeros in masked lanes.
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

// loaded loads a vector into a new register.
func (s isa) loaded(m Mem, mask Register) VecVirtual {
	v := s.vec()
	s.load(m, mask, v)
	return v
}

// loadTile loads n adjacent vectors, the last one with the mask.
func (s isa) loadTile(at, last Register, n int) (tile []VecVirtual) {
	for i := range n {
		tile = append(tile, s.loaded(Mem{Base: at, Disp: s.bytes * i}, onlyLast(last, i, n)))
	}
	return tile
}

// storeTile stores adjacent vectors, the last one with the mask.
func (s isa) storeTile(tile []VecVirtual, last, at Register) {
	for i, v := range tile {
		s.store(v, onlyLast(last, i, len(tile)), Mem{Base: at, Disp: s.bytes * i})
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

// addFrom generates acc += m.
func (s isa) addFrom(m Mem, mask Register, acc VecVirtual) {
	switch {
	case mask == nil:
		VADDPS(m, acc, acc)
	case s.wide:
		VADDPS(m, acc, mask, acc)
	default:
		VADDPS(s.loaded(m, mask), acc, acc)
	}
}

// fmaFrom generates acc += scale*m.
func (s isa) fmaFrom(m Mem, scale VecVirtual, mask Register, acc VecVirtual) {
	switch {
	case mask == nil:
		VFMADD231PS(m, scale, acc)
	case s.wide:
		VFMADD231PS(m, scale, mask, acc)
	default:
		VFMADD231PS(s.loaded(m, mask), scale, acc)
	}
}

// documented has the comments of earlier routines.
var documented = map[string]bool{}

// routine begins a routine with its Go signature and comment, which only the first of the routines
// with the same comment gets. Pointers do not escape from it.
func routine(name, signature, doc string) {
	TEXT(name, NOSPLIT, signature)
	if !documented[doc] {
		Doc(doc)
		documented[doc] = true
	}
	Pragma("noescape")
	Instruction(&ir.Instruction{Opcode: "PCALIGN", Operands: []Op{Imm(64)}})
}

// leave generates the return from a routine that used vectors.
func leave() {
	VZEROUPPER()
	RET()
}

// arg loads the 64-bit parameter called name into a register.
func arg(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// broadcastWord sets all lanes of v to a 32-bit register.
func broadcastWord(word Op, v VecVirtual) {
	low := XMM()
	VMOVD(word, low)
	VPBROADCASTD(low, v)
}

// broadcastBits sets all lanes of v to a constant.
func broadcastBits(bits uint32, v VecVirtual) {
	word := GP32()
	MOVL(U32(bits), word)
	broadcastWord(word, v)
}

// onlyLast returns the mask for the last of n vectors, and no mask for the others.
func onlyLast(mask Register, i, n int) Register {
	if i == n-1 {
		return mask
	}
	return nil
}

// countdown generates a loop that runs body n times and leaves n at 0.
func countdown(label, end string, n Register, body func()) {
	loop(label, end, n, body)
	Label(end)
}

// loop generates countdown without the label of its end, which must follow.
func loop(label, end string, n Register, body func()) {
	Label(label)
	TESTQ(n, n)
	JZ(LabelRef(end))
	body()
	DECQ(n)
	JMP(LabelRef(label))
}

// aheadAndRest generates one loop over the edges that prefetch, and one over the rest.
func aheadAndRest(name string, ahead, rest Register, body func(prefetch bool)) {
	loop(name+"_ahead", name+"_rest", ahead, func() { body(true) })
	countdown(name+"_rest", name+"_store", rest, func() { body(false) })
}

// unroll generates a loop over n elements of 4 bytes: one runs for a group of them at a time, by
// their offsets, and then for each of the rest. The loop advances the pointers.
func unroll(label string, group int, n Register, one func(disp int), pointers ...Register) {
	advance := func(count int) {
		for _, p := range pointers {
			ADDQ(U8(4*count), p)
		}
	}
	Label(label)
	CMPQ(n, U32(group))
	JLT(LabelRef("rest"))
	for i := range group {
		one(4 * i)
	}
	advance(group)
	SUBQ(U8(group), n)
	JMP(LabelRef(label))
	countdown("rest", "done", n, func() {
		one(0)
		advance(1)
	})
}

// tiles generates one tile for each number of vectors up to widest, and the jump to the tile for
// the parameter "vectors". Labels begin with name.
func tiles(name string, widest int, tile func(label string, vectors int)) {
	vectors := arg("vectors")
	for n := 1; n < widest; n++ {
		CMPQ(vectors, U8(n))
		JEQ(LabelRef(fmt.Sprint(name, n)))
	}
	for n := widest; n >= 1; n-- {
		Label(fmt.Sprint(name, n))
		tile(fmt.Sprint(name, n), n)
	}
}

// rowAddress returns the address of the row of x for an id.
func rowAddress(id Mem, stride, x Op) GPVirtual {
	p := GP64()
	MOVL(id, p.As32())
	IMULQ(stride, p)
	ADDQ(x, p)
	return p
}

// place returns the memory of a parameter or result.
func place(c gotypes.Component) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// parts has the generators of each file of assembly, for one instruction set.
var parts = map[string]func(isa){
	"attention": attention,
	"choose": func(s isa) {
		if !s.wide {
			choose()
			below()
		}
		chooseAt(s)
	},
	"coded": func(s isa) {
		if !s.wide {
			table, length := classes(), lengths()
			decodeRows(table, length)
			decodeBelow(table, length)
		}
	},
	"elu":   elu,
	"gates": gates,
	"gather": func(s isa) {
		for vectors := 1; vectors <= 8; vectors++ {
			for _, half := range []bool{false, true} {
				gather(s, half, false, vectors)
				gather(s, half, true, vectors)
			}
		}
		narrow(s)
		widen(s, false)
	},
	"lists": gatherLists,
	"multiply": func(s isa) {
		highest := 6 // of 16 registers
		if s.wide {
			highest = 12
		}
		for height := highest; height > 0; height-- {
			for vectors := 1; vectors <= 2; vectors++ {
				tile(s, false, height, vectors)
			}
		}
		pack(s)
	},
	"rows": func(s isa) {
		activate(s)
		gradient(s)
		addRow(s)
		addRows(s)
	},
	"maxima": func(s isa) {
		most := 2 // AVX2 has 16 registers
		if s.wide {
			most = 4
		}
		for vectors := 1; vectors <= most; vectors++ {
			maxima(s, false, vectors)
			maxima(s, true, vectors)
			maximaGrad(s, vectors)
		}
	},
	"packed": func(s isa) {
		if !s.wide {
			return
		}
		packRows(s)
		for vectors := 1; vectors <= 8; vectors++ {
			gatherPacked(s, vectors)
		}
	},
	"pairs": func(s isa) {
		round(s)
		if !s.wide {
			return
		}
		for height := 12; height > 0; height-- {
			for vectors := 1; vectors <= 2; vectors++ {
				tile(s, true, height, vectors)
			}
		}
		for _, half := range []bool{false, true} {
			pairRows(s, half)
			pairColumns(s, half)
		}
	},
	"quantise": func(s isa) {
		extent(s)
		for _, bits := range []int{8, 4, 2} {
			codes(s, bits)
			values(s, bits, false)
			values(s, bits, true)
		}
		widen(s, true)
	},
	"random": func(s isa) {
		dropout(s)
		sift(s)
	},
	"step": func(s isa) {
		sgd(s)
		momentum(s)
		adam(s)
	},
	"softmax": func(s isa) {
		exponentials(s)
		logarithms(s)
		if !s.wide {
			largest()
			scaleRows()
		}
	},
	"zeros": func(s isa) {
		nonzeros(s)
		for vectors := 1; vectors <= 9; vectors++ {
			sparse(s, vectors)
		}
	},
}

func main() {
	part := flag.String("part", "", "which file to write")
	flag.Parse()
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
		parts[*part](s)
	}
	pass.Compile = pass.Concat(pass.Compile, pass.FunctionPass(encode))
	Generate()
}
