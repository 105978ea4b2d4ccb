package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	. "github.com/mmcloughlin/avo/reg"
)

// Instructions of AVX512-BF16, which neither avo nor Go's assembler has. The generators emit
// instructions with the same operands in their place, and encode replaces those by bytes once
// registers are allocated.
var (
	// dotPairs adds to each sum the product of the upper numbers of the pairs x and y, and then that of the lower ones.
	dotPairs = func(x, y, sum VecVirtual) { VPMADD52LUQ(x, y, sum) }
	// joinHalves sets dst to the numbers of low and then high in bfloat16.
	joinHalves = func(low, high, dst VecVirtual) { VPACKSSDW(low, high, dst) }

	encodings = map[string]struct{ opcode, prefix byte }{
		"VPMADD52LUQ": {0x52, 2}, // VDPBF16PS
		"VPACKSSDW":   {0x72, 3}, // VCVTNE2PS2BF16
	}
)

// encode replaces the instructions of a function by their EVEX encodings (Intel, Software Developer's
// Manual, volume 2, §2.7.1): three registers of 512 bits, map 0F38, no mask.
func encode(f *ir.Function) error {
	var nodes []ir.Node
	for _, n := range f.Nodes {
		i, ok := n.(*ir.Instruction)
		if !ok || encodings[i.Opcode].opcode == 0 {
			nodes = append(nodes, n)
			continue
		}
		of := func(operand int) byte { return byte(i.Operands[operand].(Register).(Physical).PhysicalIndex()) }
		bit := func(v byte, at, to int) byte { return (^v >> at & 1) << to }
		e, rm, second, dst := encodings[i.Opcode], of(0), of(1), of(2)
		p0 := bit(dst, 3, 7) | bit(rm, 4, 6) | bit(rm, 3, 5) | bit(dst, 4, 4) | 2
		p1 := ^second&15<<3 | 4 | e.prefix
		p2 := 0x40 | bit(second, 4, 3)
		modrm := 0xc0 | dst&7<<3 | rm&7
		nodes = append(nodes,
			&ir.Instruction{Opcode: "LONG", Operands: []Op{U32(0x62 | uint32(p0)<<8 | uint32(p1)<<16 | uint32(p2)<<24)}},
			&ir.Instruction{Opcode: "WORD", Operands: []Op{U16(uint16(e.opcode) | uint16(modrm)<<8)}, ISA: []string{"AVX512BF16"}})
	}
	f.Nodes, f.ISA = nodes, nil
	return pass.RequiredISAExtensions(f)
}

// leastRounded has the bits of the least number in bfloat16 that is not rounded to 0, 2⁻⁵⁶.
const leastRounded = 71 << 7

// halves generates the rounding of low and then high to bfloat16, with small numbers set to 0.
func halves(low, high, least VecVirtual) VecVirtual {
	v := ZMM()
	joinHalves(low, high, v)
	return withoutSmall(v, least)
}

// withoutSmall sets small numbers in bfloat16 to 0.
func withoutSmall(v, least VecVirtual) VecVirtual {
	doubled, large := ZMM(), K()
	VPADDW(v, v, doubled) // without the sign
	VPCMPUW(U8(5), least, doubled, large)
	VMOVDQU16_Z(v, large, v)
	return v
}

// leastHalf returns the limit of halves.
func leastHalf() VecVirtual {
	least := ZMM()
	broadcastBits(2*leastRounded<<16|2*leastRounded, least)
	return least
}

// pairRows generates the conversion of rows to pairs of adjacent elements, the first one in the upper half. With half, rows
// are bfloat16.
func pairRows(s isa, half bool) {
	name, elem, bytes := "pairRows512", "float32", 128
	if half {
		name, elem, bytes = "pairHalfRows512", "uint16", 64
	}
	routine(name, "func(dst *float32, x *"+elem+", stride, rows, full, lanes int)",
		"Converts rows of x, stride bytes apart, to pairs: full blocks of 32 elements and one of lanes. Rows of dst have whole blocks.")
	dst, x, stride, rows := arg("dst"), arg("x"), arg("stride"), arg("rows")
	mask, count, low, high := GP64(), GP64(), K(), K()
	MOVQ(U64(1<<32-1), mask)
	MOVQ(U32(32), RCX)
	SUBQ(Load(Param("lanes"), GP64()), RCX)
	SHRQ(CL, mask)
	if half {
		KMOVD(mask.As32(), low)
	} else {
		KMOVW(mask.As32(), low)
		SHRQ(U8(16), mask)
		KMOVW(mask.As32(), high)
	}
	least := leastHalf()
	block := func(at Register, last bool) {
		var v VecVirtual
		switch {
		case half && last:
			v = ZMM()
			VMOVDQU16_Z(Mem{Base: at}, low, v)
			v = withoutSmall(v, least)
		case half:
			v = withoutSmall(s.loaded(Mem{Base: at}, nil), least)
		case last:
			v = halves(s.loaded(Mem{Base: at}, low), s.loaded(Mem{Base: at, Disp: 64}, high), least)
		default:
			v = halves(s.loaded(Mem{Base: at}, nil), s.loaded(Mem{Base: at, Disp: 64}, nil), least)
		}
		VPROLD(U8(16), v, v)
		VMOVUPS(v, Mem{Base: dst})
		ADDQ(U8(64), dst)
	}
	Label("row")
	at := GP64()
	MOVQ(x, at)
	Load(Param("full"), count)
	countdown("block", "rest", count, func() {
		block(at, false)
		ADDQ(U32(bytes), at)
	})
	block(at, true)
	ADDQ(stride, x)
	DECQ(rows)
	JNZ(LabelRef("row"))
	leave()
}

// pairColumns generates the conversion of two rows at a time to pairs of their elements, the first row's in
// the upper half. With half, rows are bfloat16.
func pairColumns(s isa, half bool) {
	name, elem, bytes := "pairColumns512", "float32", 64
	if half {
		name, elem, bytes = "pairHalfColumns512", "uint16", 32
	} else {
		GLOBL("interleaved", RODATA|NOPTR)
		for i := range 16 {
			DATA(4*i, U32(uint32(16+i)<<16|uint32(i)))
		}
	}
	routine(name, "func(dst *float32, ldd int, x *"+elem+", stride, pairs, full, lanes int)",
		"Converts pairs of rows of x to a row of dst: full vectors of elements and one of lanes. Strides are in bytes.")
	mask := s.mask("lanes")
	dst, ldd, x, stride, pairs := arg("dst"), arg("ldd"), arg("x"), arg("stride"), arg("pairs")
	least, interleaved, to, at, count := leastHalf(), ZMM(), GP64(), GP64(), GP64()
	if !half {
		VMOVUPS(NewDataAddr(Symbol{Name: "interleaved", Static: true}, 0), interleaved)
	}
	vector := func(mask Register) {
		first, second := Mem{Base: at}, Mem{Base: at, Index: stride, Scale: 1}
		var v VecVirtual
		if half {
			upper, lower := wideHalf(first, mask), wideHalf(second, mask)
			VPSLLD(U8(16), upper, upper)
			VPORD(upper, lower, lower)
			v = withoutSmall(lower, least)
		} else {
			v = halves(s.loaded(second, mask), s.loaded(first, mask), least)
			VPERMW(v, interleaved, v)
		}
		s.store(v, mask, Mem{Base: to})
	}
	Label("pair")
	MOVQ(x, at)
	MOVQ(dst, to)
	Load(Param("full"), count)
	countdown("vector", "rest", count, func() {
		vector(nil)
		ADDQ(U8(bytes), at)
		ADDQ(U8(64), to)
	})
	vector(mask)
	LEAQ(Mem{Base: x, Index: stride, Scale: 2}, x)
	ADDQ(ldd, dst)
	DECQ(pairs)
	JNZ(LabelRef("pair"))
	leave()
}

// wideHalf loads 16 numbers in bfloat16 to the lower halves of lanes, with zeros in masked lanes.
func wideHalf(m Mem, mask Register) VecVirtual {
	v := ZMM()
	if mask == nil {
		VPMOVZXWD(m, v)
	} else {
		VPMOVZXWD_Z(m, mask, v)
	}
	return v
}

// round generates the rounding of full vectors to bfloat16, for sets of instructions without it.
func round(s isa) {
	routine("round"+s.name, "func(dst, x *float32, vectors int)",
		"Sets dst to x, rounded to bfloat16 and with small numbers set to 0, whole vectors.")
	dst, x, n := arg("dst"), arg("x"), arg("vectors")
	one, bias, nan, upper, least, size := s.vec(), s.vec(), s.vec(), s.vec(), s.vec(), s.vec()
	broadcastBits(1, one)
	broadcastBits(0x7fff, bias)
	broadcastBits(0x7fc00000, nan)
	broadcastBits(0xffff0000, upper)
	broadcastBits(0x7fffffff, size)
	broadcastBits(leastRounded<<16, least)
	Label("next")
	v, bits := s.loaded(Mem{Base: x}, nil), s.vec()
	s.roundBits(v, one, bias, nan)
	const notLess = 5
	if s.wide {
		large := K()
		VPANDD(upper, v, v)
		VPANDD(size, v, bits)
		VCMPPS(U8(notLess), least, bits, large)
		VMOVDQA32_Z(v, large, v)
	} else {
		VPAND(upper, v, v)
		VPAND(size, v, bits)
		VCMPPS(U8(notLess), least, bits, bits)
		VPAND(bits, v, v)
	}
	s.store(v, nil, Mem{Base: dst})
	ADDQ(U8(s.bytes), x)
	ADDQ(U8(s.bytes), dst)
	DECQ(n)
	JNZ(LabelRef("next"))
	leave()
}
