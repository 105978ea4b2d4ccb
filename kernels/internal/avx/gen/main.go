// Command gen writes the assembly of package avx: run "go generate" there.
//
// Every routine comes in two versions that do the same operations in the same
// order: AVX-512 with 16 lanes and mask registers, AVX2 with 8 lanes and masks
// in vectors. Only the last vector of a row is masked, and masked lanes are
// neither read nor written.
package main

import (
	"flag"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
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
// vector, into a mask.
func (s isa) mask(name string) Register {
	return s.maskOf(Load(Param(name), GP64()).(GPVirtual))
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

// addFrom generates acc += m.
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

// fmaFrom generates acc += scale*m.
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

// place returns the memory of a parameter or result.
func place(c gotypes.Component) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err)
	}
	return b.Addr
}

// parts are the files of assembly: what each is made of, for one set.
var parts = map[string]func(isa){
	"attention": attention,
	"bag":       gatherValues,
	"choose": func(s isa) {
		if !s.wide {
			choose()
			below()
		}
	},
	"elu": elu,
	"gather": func(s isa) {
		for vectors := 1; vectors <= 8; vectors++ {
			for _, half := range []bool{false, true} {
				gather(s, half, false, vectors)
				gather(s, half, true, vectors)
			}
		}
		narrow(s)
		widen(s)
	},
	"lists": gatherLists,
	"multiply": func(s isa) {
		highest := 6 // of 16 registers
		if s.wide {
			highest = 12
		}
		for height := highest; height > 0; height-- {
			for vectors := 1; vectors <= 2; vectors++ {
				tile(s, height, vectors)
			}
		}
		pack(s)
	},
	"rows": func(s isa) {
		activate(s)
		gradient(s)
		addRow(s)
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
	"quantise": func(s isa) {
		extent(s)
		for _, bits := range []int{8, 4, 2} {
			codes(s, bits)
			values(s, bits, false)
			values(s, bits, true)
		}
		widenAdd(s)
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
		if !s.wide {
			softmax()
		}
	},
	"zeros": func(s isa) {
		nonzeros(s)
		for vectors := 1; vectors <= 8; vectors++ {
			sparseRows(s, vectors)
			sparseColumns(s, vectors)
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
	Generate()
}
