// Command gen writes the assembly of package machine: run "go generate" there.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set: the bytes of a vector, and the number of independent sums, which hides the
// latency of two multipliers and leaves two registers for the operands.
type isa struct {
	name       string
	bytes, sum int
	vector     func() VecVirtual
}

var sets = []isa{{"512", 64, 24, ZMM}, {"256", 32, 14, YMM}}

func arg(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

// begin begins a routine and returns vectors of zeros.
func (s isa) begin(name, signature, doc string, zeros int) []VecVirtual {
	TEXT(name+s.name, NOSPLIT, signature)
	Pragma("noescape")
	Doc(doc)
	v := make([]VecVirtual, zeros)
	for k := range v {
		v[k] = s.vector()
		if s.bytes == 64 {
			VPXORD(v[k], v[k], v[k])
		} else {
			VPXOR(v[k], v[k], v[k])
		}
	}
	return v
}

func (s isa) or(m Mem, v VecVirtual) {
	if s.bytes == 64 {
		VPORD(m, v, v)
	} else {
		VPOR(m, v, v)
	}
}

func end() {
	VZEROUPPER()
	RET()
}

// multiplyAdds generates the loop in registers.
func multiplyAdds(s isa) {
	sums := s.begin("multiplyAdds", "func(n int, x, y float32)",
		fmt.Sprintf("Adds x times y n times to each element of %d vectors.", s.sum), s.sum)
	n, x, y := arg("n"), s.vector(), s.vector()
	VBROADCASTSS(NewParamAddr("x", 8), x)
	VBROADCASTSS(NewParamAddr("y", 12), y)
	Label("loop")
	for _, v := range sums {
		VFMADD231PS(x, y, v)
	}
	DECQ(n)
	JNZ(LabelRef("loop"))
	end()
}

// read generates the sequential loads of blocks of 1024 bytes.
func read(s isa) {
	v := s.begin("read", "func(x *byte, blocks int)", "Loads blocks of 1024 bytes.", 8)
	x, blocks := arg("x"), arg("blocks")
	Label("loop")
	for at := 0; at < 1024; at += s.bytes {
		s.or(Mem{Base: x, Disp: at}, v[at/s.bytes%len(v)])
	}
	ADDQ(U32(1024), x)
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	end()
}

// rows generates the loads of listed rows of few vectors or, for 0, of any number. It prefetches the lines of the
// row ahead, or of none.
func rows(s isa, few int, prefetches bool) {
	name := "rows"
	if prefetches {
		name = "fetchedRows"
	}
	if few > 0 {
		name = fmt.Sprintf("%sOf%dx", name, few)
	}
	v := s.begin(name, "func(x *byte, stride, vectors int, ids *uint32, n int)",
		"Loads vectors of n rows, which are stride bytes apart. fetchedRows prefetches 8 rows ahead: n+8 ids must exist.", 4)
	x, stride, vectors, ids, n := arg("x"), arg("stride"), arg("vectors"), arg("ids"), arg("n")
	// next sets row to the address of the row that is ahead of the current one.
	next := func(row GPVirtual, ahead int) {
		MOVL(Mem{Base: ids, Disp: 4 * ahead}, row.As32())
		IMULQ(stride, row)
	}
	row, left, ahead, lines := GP64(), GP64(), GP64(), GP64()
	step := 1
	if few > 0 {
		step = 2
	}
	Label("loop")
	for k := range step {
		if prefetches {
			next(ahead, k+8)
			if few > 0 {
				for at := 0; at < few*s.bytes; at += 64 {
					PREFETCHT0(Mem{Base: x, Index: ahead, Scale: 1, Disp: at})
				}
			} else {
				ADDQ(x, ahead)
				MOVQ(vectors, lines)
				Label("fetch")
				PREFETCHT0(Mem{Base: ahead})
				ADDQ(U32(64), ahead)
				SUBQ(U8(64/s.bytes), lines)
				JG(LabelRef("fetch"))
			}
		}
		next(row, k)
		for i := range few {
			s.or(Mem{Base: x, Index: row, Scale: 1, Disp: i * s.bytes}, v[(few*k+i)%len(v)])
		}
	}
	if few == 0 {
		ADDQ(x, row)
		MOVQ(vectors, left)
		SUBQ(U8(4), left)
		Label("four")
		for k := range 4 {
			s.or(Mem{Base: row, Disp: k * s.bytes}, v[k])
		}
		ADDQ(U32(uint32(4*s.bytes)), row)
		SUBQ(U8(4), left)
		JGE(LabelRef("four"))
		ADDQ(U8(4), left)
		JE(LabelRef("next"))
		Label("one")
		s.or(Mem{Base: row}, v[0])
		ADDQ(U32(uint32(s.bytes)), row)
		DECQ(left)
		JNZ(LabelRef("one"))
		Label("next")
	}
	ADDQ(U8(uint8(4*step)), ids)
	SUBQ(U8(uint8(step)), n)
	JG(LabelRef("loop"))
	end()
}

// cpuid generates the instruction of this name.
func cpuid() {
	TEXT("cpuid", NOSPLIT, "func(leaf, sub uint32) (a, b, c uint32)")
	Doc("Returns three words of a leaf.")
	Load(Param("leaf"), EAX)
	Load(Param("sub"), ECX)
	CPUID()
	for k, word := range []Register{EAX, EBX, ECX} {
		Store(word, ReturnIndex(k))
	}
	RET()
}

func main() {
	ConstraintExpr("amd64")
	cpuid()
	for _, s := range sets {
		multiplyAdds(s)
		read(s)
		for few := range 5 {
			rows(s, few, false)
			rows(s, few, true)
		}
	}
	Generate()
}
