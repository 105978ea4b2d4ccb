package ptx

import (
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"siafu/cuda/device"
)

// word is an instruction and its expected result for operands of four words; the first two and
// the last two also form operands of 64 bits.
type word struct {
	code string // leaves its result in r5 or rd5
	want func(a, b, c, d uint32) uint64
	wide bool
}

// f64s moves the operands of 64 bits to d0 and d1.
const f64s = "mov.b64 %d0, %rd6; mov.b64 %d1, %rd7; "

func f64of(a, b uint32) float64 { return math.Float64frombits(u64of(a, b)) }

func u64of(a, b uint32) uint64 { return uint64(a) | uint64(b)<<32 }

func f32of(a uint32) float32 { return math.Float32frombits(a) }

func bitsOf(x float32) uint64 { return uint64(math.Float32bits(x)) }

func when(b bool) uint64 { return uint64(bit(b)) }

// words lists instructions with their equivalents in Go.
var words = []word{
	{code: "add.s32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return uint64(a + b) }},
	{code: "sub.s32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return uint64(a - b) }},
	{code: "mul.lo.s32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return uint64(a * b) }},
	{code: "mul.hi.u32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return uint64(a) * uint64(b) >> 32 }},
	{code: "mul.hi.s32 %r5, %r1, %r2;",
		want: func(a, b, c, d uint32) uint64 { return uint64(uint32(int64(int32(a)) * int64(int32(b)) >> 32)) }},
	{code: "mad.lo.s32 %r5, %r1, %r2, %r3;", want: func(a, b, c, d uint32) uint64 { return uint64(a*b + c) }},
	{code: "mad.hi.u32 %r5, %r1, %r2, %r3;", want: func(a, b, c, d uint32) uint64 { return uint64(uint32(uint64(a)*uint64(b)>>32) + c) }},
	{code: "div.u32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return quotient(uint64(a), uint64(b), 1<<32-1) }},
	{code: "div.s32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 {
		if b == 0 {
			return 1<<32 - 1
		}
		return uint64(uint32(int32(int64(int32(a)) / int64(int32(b)))))
	}},
	{code: "rem.u32 %r5, %r1, 77;", want: func(a, b, c, d uint32) uint64 { return uint64(a % 77) }},
	{code: "rem.s32 %r5, %r1, -77;", want: func(a, b, c, d uint32) uint64 { return uint64(uint32(int32(a) % 77)) }},
	{code: "min.s32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return uint64(uint32(min(int32(a), int32(b)))) }},
	{code: "max.u32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return uint64(max(a, b)) }},
	{code: "neg.s32 %r5, %r1;", want: func(a, b, c, d uint32) uint64 { return uint64(-a) }},
	{code: "abs.s32 %r5, %r1;", want: func(a, b, c, d uint32) uint64 { return uint64(uint32(max(int32(a), -int32(a)))) }},
	{code: "and.b32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return uint64(a & b) }},
	{code: "or.b32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return uint64(a | b) }},
	{code: "xor.b32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return uint64(a ^ b) }},
	{code: "not.b32 %r5, %r1;", want: func(a, b, c, d uint32) uint64 { return uint64(^a) }},
	{code: "cnot.b32 %r5, %r1;", want: func(a, b, c, d uint32) uint64 { return when(a == 0) }},
	{code: "and.b32 %r6, %r2, 63; shl.b32 %r5, %r1, %r6;", want: func(a, b, c, d uint32) uint64 { return uint64(a << (b & 63)) }},
	{code: "and.b32 %r6, %r2, 63; shr.u32 %r5, %r1, %r6;", want: func(a, b, c, d uint32) uint64 { return uint64(a >> (b & 63)) }},
	{code: "and.b32 %r6, %r2, 63; shr.s32 %r5, %r1, %r6;",
		want: func(a, b, c, d uint32) uint64 { return uint64(uint32(int32(a) >> (b & 63))) }},
	{code: "shf.l.wrap.b32 %r5, %r1, %r1, 13;", want: func(a, b, c, d uint32) uint64 { return uint64(bits.RotateLeft32(a, 13)) }},
	{code: "shf.r.wrap.b32 %r5, %r1, %r2, %r3;", want: func(a, b, c, d uint32) uint64 { return uint64(uint32(u64of(a, b) >> (c & 31))) }},
	{code: "popc.b32 %r5, %r1;", want: func(a, b, c, d uint32) uint64 { return uint64(bits.OnesCount32(a)) }},
	{code: "popc.b64 %r5, %rd6;", want: func(a, b, c, d uint32) uint64 { return uint64(bits.OnesCount64(u64of(a, b))) }},
	{code: "clz.b32 %r5, %r1;", want: func(a, b, c, d uint32) uint64 { return uint64(bits.LeadingZeros32(a)) }},
	{code: "clz.b64 %r5, %rd6;", want: func(a, b, c, d uint32) uint64 { return uint64(bits.LeadingZeros64(u64of(a, b))) }},
	{code: "brev.b32 %r5, %r1;", want: func(a, b, c, d uint32) uint64 { return uint64(bits.Reverse32(a)) }},
	{code: "bfe.u32 %r5, %r1, 5, 11;", want: func(a, b, c, d uint32) uint64 { return uint64(a >> 5 & 2047) }},
	{code: "bfe.s32 %r5, %r1, 5, 11;", want: func(a, b, c, d uint32) uint64 { return uint64(uint32(int32(a) << 16 >> 21)) }},
	{code: "bfe.u32 %r5, %r1, 24, 20;", want: func(a, b, c, d uint32) uint64 { return uint64(a >> 24) }},
	{code: "bfi.b32 %r5, %r1, %r2, 5, 11;", want: func(a, b, c, d uint32) uint64 { return uint64(b&^(2047<<5) | a&2047<<5) }},
	{code: "prmt.b32 %r5, %r1, %r2, 0x7610;", want: func(a, b, c, d uint32) uint64 { return uint64(a&0xffff | b&0xffff0000) }},
	{code: "prmt.b32 %r5, %r1, %r2, 0x00c5;", want: func(a, b, c, d uint32) uint64 {
		return uint64(b>>8&255 | uint32(int8(b)>>7)&255<<8 | a&255<<16 | a&255<<24)
	}},
	{code: "lop3.b32 %r5, %r1, %r2, %r3, 0x96;", want: func(a, b, c, d uint32) uint64 { return uint64(a ^ b ^ c) }},
	{code: "lop3.b32 %r5, %r1, %r2, %r3, 0xe2;", want: func(a, b, c, d uint32) uint64 { return uint64(a&b | c&^b) }},
	{code: "setp.lt.s32 %p0, %r1, %r2; selp.b32 %r5, %r3, %r4, %p0;", want: func(a, b, c, d uint32) uint64 {
		if int32(a) < int32(b) {
			return uint64(c)
		}
		return uint64(d)
	}},
	{code: "setp.hi.u32 %p0, %r1, %r2; setp.ge.and.s32 %p1|%p2, %r3, %r4, !%p0; selp.b32 %r5, 1, 0, %p1; selp.b32 %r6, 2, " +
		"0, %p2; or.b32 %r5, %r5, %r6;",
		want: func(a, b, c, d uint32) uint64 {
			r := a <= b
			return when(int32(c) >= int32(d) && r) | when(!(int32(c) >= int32(d)) && r)<<1
		}},
	{code: "set.ne.u32.u32 %r5, %r1, %r2;", want: func(a, b, c, d uint32) uint64 { return uint64(-uint32(when(a != b))) }},
	{code: "setp.lt.f32 %p0, %f0, %f1; setp.ltu.f32 %p1, %f0, %f1; setp.neu.f32 %p2, %f0, %f1; selp.b32 %r5, 1, 0, %p0; selp.b32 %r6, 2, " +
		"0, %p1; or.b32 %r5, %r5, %r6; selp.b32 %r6, 4, 0, %p2; or.b32 %r5, %r5, %r6;",
		want: func(a, b, c, d uint32) uint64 {
			x, y := f32of(a), f32of(b)
			return when(x < y) | when(!(x >= y))<<1 | when(x != y)<<2
		}},
	{code: "setp.ne.f32 %p0, %f0, %f1; setp.nan.f32 %p1, %f0, %f1; xor.pred %p0, %p0, %p1; not.pred %p0, %p0; selp.b32 %r5, 1, 0, %p0;",
		want: func(a, b, c, d uint32) uint64 { return when(f32of(a) == f32of(b)) }},
	{code: "add.f32 %f4, %f0, %f1; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 { return bitsOf(f32of(a) + f32of(b)) }},
	{code: "div.rn.f32 %f4, %f0, %f1; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 { return bitsOf(f32of(a) / f32of(b)) }},
	{code: "add.ftz.f32 %f4, %f0, %f1; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 {
		return uint64(flushed(uint32(bitsOf(f32of(flushed(a)) + f32of(flushed(b))))))
	}},
	{code: "mul.sat.f32 %f4, %f0, %f1; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 {
		if x := f32of(a) * f32of(b); x > 0 {
			return bitsOf(min(x, 1))
		}
		return 0
	}},
	{code: "min.f32 %f4, %f0, %f1; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 { return bitsOf(lesser(f32of(a), f32of(b))) }},
	{code: "max.f32 %f4, %f0, %f1; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 {
		return bitsOf(-lesser(-f32of(a), -f32of(b)))
	}},
	{code: "neg.f32 %f4, %f0; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 { return uint64(a ^ 1<<31) }},
	{code: "abs.f32 %f4, %f0; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 { return uint64(a &^ (1 << 31)) }},
	{code: "abs.f32 %f4, %f0; sqrt.rn.f32 %f4, %f4; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 {
		return bitsOf(float32(math.Sqrt(float64(f32of(a &^ (1 << 31))))))
	}},
	{code: "cvt.rn.f32.s32 %f4, %r1; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 { return bitsOf(float32(int32(a))) }},
	{code: "cvt.rn.f32.u64 %f4, %rd6; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 {
		x, _ := new(big.Float).SetInt(new(big.Int).SetUint64(u64of(a, b))).Float32()
		return bitsOf(x)
	}},
	{code: "cvt.rzi.s32.f32 %r5, %f0;", want: func(a, b, c, d uint32) uint64 {
		x := math.Trunc(float64(f32of(a)))
		if x != x {
			return 0
		}
		return uint64(uint32(int32(max(-1<<31, min(1<<31-1, x)))))
	}},
	{code: "cvt.rni.u32.f32 %r5, %f0;", want: func(a, b, c, d uint32) uint64 {
		x := math.RoundToEven(float64(f32of(a)))
		if x != x {
			return 0
		}
		return uint64(uint32(max(0, min(1<<32-1, x))))
	}},
	{code: "cvt.rmi.f32.f32 %f4, %f0; mov.b32 %r5, %f4;",
		want: func(a, b, c, d uint32) uint64 { return bitsOf(float32(math.Floor(float64(f32of(a))))) }},
	{code: "cvt.u32.u16 %r5, %h0;", want: func(a, b, c, d uint32) uint64 { return 0 }},
	{code: "cvt.s8.s32 %r5, %r1;", want: func(a, b, c, d uint32) uint64 { return uint64(uint32(int32(int8(a)))) }},
	{code: "cvt.sat.u8.s32 %r5, %r1;", want: func(a, b, c, d uint32) uint64 { return uint64(max(0, min(255, int32(a)))) }},
	{code: "mov.b32 {%h1, %h2}, %r1; mov.b32 %r5, {%h2, %h1};", want: func(a, b, c, d uint32) uint64 { return uint64(a>>16 | a<<16) }},
	{code: "cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; mul.wide.s16 %r5, %h1, %h2;", want: func(a, b, c, d uint32) uint64 {
		return uint64(uint32(int32(int16(a)) * int32(int16(b))))
	}},
	{code: "cvt.u16.u32 %h1, %r1; shr.s16 %h1, %h1, 3; cvt.s32.s16 %r5, %h1;",
		want: func(a, b, c, d uint32) uint64 { return uint64(uint32(int32(int16(a) >> 3))) }},
	{code: "add.s64 %rd5, %rd6, %rd7;", wide: true, want: func(a, b, c, d uint32) uint64 { return u64of(a, b) + u64of(c, d) }},
	{code: "mul.lo.s64 %rd5, %rd6, %rd7;", wide: true, want: func(a, b, c, d uint32) uint64 { return u64of(a, b) * u64of(c, d) }},
	{code: "mul.hi.u64 %rd5, %rd6, %rd7;", wide: true, want: func(a, b, c, d uint32) uint64 {
		hi, _ := bits.Mul64(u64of(a, b), u64of(c, d))
		return hi
	}},
	{code: "mul.hi.s64 %rd5, %rd6, %rd7;", wide: true, want: func(a, b, c, d uint32) uint64 {
		p := new(big.Int).Mul(big.NewInt(int64(u64of(a, b))), big.NewInt(int64(u64of(c, d))))
		return uint64(p.Rsh(p, 64).Int64())
	}},
	{code: "mul.wide.s32 %rd5, %r1, %r2;", wide: true,
		want: func(a, b, c, d uint32) uint64 { return uint64(int64(int32(a)) * int64(int32(b))) }},
	{code: "mad.wide.u32 %rd5, %r1, %r2, %rd7;", wide: true,
		want: func(a, b, c, d uint32) uint64 { return uint64(a)*uint64(b) + u64of(c, d) }},
	{code: "cvt.s64.s32 %rd5, %r1;", wide: true, want: func(a, b, c, d uint32) uint64 { return uint64(int64(int32(a))) }},
	{code: "cvt.u64.u32 %rd5, %r1;", wide: true, want: func(a, b, c, d uint32) uint64 { return uint64(a) }},
	{code: "and.b32 %r6, %r3, 127; shr.s64 %rd5, %rd6, %r6;", wide: true,
		want: func(a, b, c, d uint32) uint64 { return uint64(int64(u64of(a, b)) >> (c & 127)) }},
	{code: "mov.b64 %rd5, {%r2, %r1};", wide: true, want: func(a, b, c, d uint32) uint64 { return u64of(b, a) }},
	{code: "cvt.f64.f32 %d0, %f0; cvt.f64.f32 %d1, %f1; fma.rn.f64 %d2, %d0, %d1, %d0; mov.b64 %rd5, %d2;", wide: true,
		want: func(a, b, c, d uint32) uint64 {
			return math.Float64bits(math.FMA(float64(f32of(a)), float64(f32of(b)), float64(f32of(a))))
		}},
	{code: "div.s64 %rd5, %rd6, %rd7;", wide: true, want: func(a, b, c, d uint32) uint64 {
		if u64of(c, d) == 0 {
			return 1<<64 - 1
		}
		return uint64(int64(u64of(a, b)) / int64(u64of(c, d)))
	}},
	{code: "rem.u64 %rd5, %rd6, 1000003;", wide: true, want: func(a, b, c, d uint32) uint64 { return u64of(a, b) % 1000003 }},
	{code: "min.s64 %rd5, %rd6, %rd7;", wide: true, want: func(a, b, c, d uint32) uint64 {
		return uint64(min(int64(u64of(a, b)), int64(u64of(c, d))))
	}},
	{code: "brev.b64 %rd5, %rd6;", wide: true, want: func(a, b, c, d uint32) uint64 { return bits.Reverse64(u64of(a, b)) }},
	{code: "bfe.s64 %rd5, %rd6, 20, 30;", wide: true,
		want: func(a, b, c, d uint32) uint64 { return uint64(int64(u64of(a, b)) << 14 >> 34) }},
	{code: "bfi.b64 %rd5, %rd6, %rd7, 40, 24;", wide: true, want: func(a, b, c, d uint32) uint64 {
		return u64of(c, d)&(1<<40-1) | u64of(a, b)<<40
	}},
	{code: "setp.gt.u64 %p0, %rd6, %rd7; selp.b64 %rd5, %rd6, %rd7, %p0;", wide: true,
		want: func(a, b, c, d uint32) uint64 { return max(u64of(a, b), u64of(c, d)) }},
	{code: f64s + "mul.rn.f64 %d2, %d0, %d1; mov.b64 %rd5, %d2;", wide: true, want: func(a, b, c, d uint32) uint64 {
		return math.Float64bits(f64of(a, b) * f64of(c, d))
	}},
	{code: f64s + "div.rn.f64 %d2, %d0, %d1; mov.b64 %rd5, %d2;", wide: true, want: func(a, b, c, d uint32) uint64 {
		return math.Float64bits(f64of(a, b) / f64of(c, d))
	}},
	{code: f64s + "rcp.rn.f64 %d2, %d0; mov.b64 %rd5, %d2;", wide: true,
		want: func(a, b, c, d uint32) uint64 { return math.Float64bits(1 / f64of(a, b)) }},
	{code: f64s + "cvt.rni.f64.f64 %d2, %d0; mov.b64 %rd5, %d2;", wide: true, want: func(a, b, c, d uint32) uint64 {
		return math.Float64bits(math.RoundToEven(f64of(a, b)))
	}},
	{code: f64s + "setp.leu.f64 %p0, %d0, %d1; setp.le.f64 %p1, %d0, %d1; selp.b32 %r5, 1, 0, %p0; selp.b32 %r6, 2, " +
		"0, %p1; or.b32 %r5, %r5, %r6;",
		want: func(a, b, c, d uint32) uint64 {
			x, y := f64of(a, b), f64of(c, d)
			return when(!(x > y)) | when(x <= y)<<1
		}},
	{code: f64s + "cvt.rn.f32.f64 %f4, %d0; mov.b32 %r5, %f4;",
		want: func(a, b, c, d uint32) uint64 { return bitsOf(float32(f64of(a, b))) }},
	{code: f64s + "cvt.rzi.s32.f64 %r5, %d0;", want: func(a, b, c, d uint32) uint64 {
		x := math.Trunc(f64of(a, b))
		if x != x {
			return 0
		}
		return uint64(uint32(int32(max(-1<<31, min(1<<31-1, x)))))
	}},
	{code: "cvt.rzi.s64.f32 %rd5, %f0;", wide: true, want: func(a, b, c, d uint32) uint64 {
		x := float64(f32of(a))
		switch {
		case x != x:
			return 0
		case x >= 1<<63:
			return 1<<63 - 1
		case x <= -1<<63:
			return 1 << 63
		}
		return uint64(int64(x))
	}},
	{code: "cvt.rp.f32.s32 %f4, %r1; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 {
		x := float32(int32(a))
		if float64(x) < float64(int32(a)) {
			x = math.Nextafter32(x, float32(math.Inf(1)))
		}
		return bitsOf(x)
	}},
	{code: "cvt.rn.f16.f32 %h1, %f0; cvt.f32.f16 %f4, %h1; sub.f32 %f4, %f0, %f4; abs.f32 %f4, %f4; setp.le.f32 %p0, %f4, 0f39800000; " +
		"abs.f32 %f5, %f0; setp.ge.f32 %p1, %f5, 0f3f800000; or.pred %p0, %p0, %p1; selp.b32 %r5, 1, 0, %p0;",
		want: func(a, b, c, d uint32) uint64 { return when(f32of(a) == f32of(a)) }},
	{code: "cvt.rn.bf16x2.f32 %r5, %f0, %f1; and.b32 %r6, %r5, 0x7f807f80; setp.eq.u32 %p0, %r1, %r1; selp.b32 %r5, %r6, 0, %p0;",
		want: func(a, b, c, d uint32) uint64 {
			return uint64(roundBits(float64(f32of(a)), nearest, 7,
				127)&0x7f80)<<16 | uint64(roundBits(float64(f32of(b)), nearest, 7, 127)&0x7f80)
		}},
	{code: "setp.eq.u32 %p0, %r1, %r2; setp.lt.u32 %p1, %r3, %r4; and.pred %p2, %p0, !%p1; or.pred %p2, !%p2, %p0; mov.pred %p1, -1; " +
		"xor.pred %p2, %p2, %p1; selp.b32 %r5, 0, 1, %p2;",
		want: func(a, b, c, d uint32) uint64 { return when(!(a == b && !(c < d)) || a == b) }},
	{code: "copysign.f32 %f4, %f0, %f1; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 { return uint64(b&^(1<<31) | a&(1<<31)) }},
	{code: "rsqrt.approx.f32 %f4, %f0; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 {
		return bitsOf(float32(1 / math.Sqrt(float64(f32of(a)))))
	}},
	{code: "lg2.approx.ftz.f32 %f4, %f0; mov.b32 %r5, %f4;", want: func(a, b, c, d uint32) uint64 {
		return bitsOf(float32(math.Log2(float64(f32of(flushed(a))))))
	}},
	{code: "bfind.u32 %r5, %r1;", want: func(a, b, c, d uint32) uint64 { return uint64(uint32(bits.Len32(a) - 1)) }},
	{code: "shf.l.clamp.b32 %r5, %r1, %r2, %r3;",
		want: func(a, b, c, d uint32) uint64 { return uint64(uint32(u64of(a, b) << min(c, 32) >> 32)) }},
	{code: "membar.gl; fence.acq_rel.gpu; mov.u32 %r5, WARP_SZ;", want: func(a, b, c, d uint32) uint64 { return 32 }},
	{code: "isspacep.global %p0, %rd3; isspacep.shared %p1, %rd3; selp.b32 %r5, 1, 0, %p0; @%p1 add.s32 %r5, %r5, 2;",
		want: func(a, b, c, d uint32) uint64 { return 1 }},
	{code: "ld.s8 %r5, [%rd3+1];", want: func(a, b, c, d uint32) uint64 { return uint64(uint32(int32(int8(a >> 8)))) }},
	{code: "ld.global.nc.v4.u16 {%h0, %h1, _, %h2}, [%rd3]; mov.b32 %r5, {%h2, %h1};",
		want: func(a, b, c, d uint32) uint64 { return uint64(b>>16 | a&0xffff0000) }},
	{code: "{ .reg .b32 %r1; mov.u32 %r1, 7; mov.u32 %r5, %r1; } add.s32 %r5, %r5, %r1;",
		want: func(a, b, c, d uint32) uint64 { return uint64(a + 7) }},
	{code: "cvt.rn.f64.s64 %d0, %rd6; mov.b64 %rd5, %d0;", wide: true,
		want: func(a, b, c, d uint32) uint64 { return math.Float64bits(float64(int64(u64of(a, b)))) }},
}

func quotient(a, b, none uint64) uint64 {
	if b == 0 {
		return none
	}
	return a / b
}

// lesser computes PTX's min a second way.
func lesser(x, y float32) float32 {
	a, b := float64(x), float64(y)
	switch {
	case a != a && b != b:
		return math.Float32frombits(0x7fffffff)
	case a != a:
		return y
	case b != b:
		return x
	}
	return float32(math.Min(a, b))
}

// TestInstructions compares each instruction with Go, on awkward operands, also with only some
// active lanes. All NaNs are equal.
func TestInstructions(t *testing.T) {
	const n = 512
	r := rand.New(rand.NewPCG(15, 16))
	x := make([]uint32, 4*n)
	for i := range x {
		switch r.IntN(4) {
		case 0:
			x[i] = []uint32{0, 1, 1 << 31, 1<<31 - 1, 1<<32 - 1, 0x7f800000, 0x7fc00000, 0xff800000}[r.IntN(8)]
		case 1:
			x[i] = r.Uint32() >> r.IntN(32)
		case 2:
			x[i] = math.Float32bits(awkward(r))
		default:
			x[i] = r.Uint32()
		}
	}
	l := newLab(t, Settings{})
	px := upload(l, x)
	for _, w := range words {
		t.Run(strings.Fields(w.code)[0], func(t *testing.T) {
			end := "cvt.u64.u32 %rd5, %r5; st.global.u64 [%rd4], %rd5;"
			if w.wide {
				end = "st.global.u64 [%rd4], %rd5;"
			}
			all := read(l, make([]uint64, n), run(l, w.code+end, px, n))
			some := read(l, make([]uint64, n), run(l,
				"and.b32 %r7, %r0, 5; setp.ne.u32 %p3, %r7, 4; mov.u64 %rd5, 0; mov.u32 %r5, 0; @%p3 bra A;\n"+w.code+"A: "+end, px, n))
			for i := range n {
				o := x[4*i:]
				want := w.want(o[0], o[1], o[2], o[3])
				if !agree(all[i], want, w) {
					t.Fatalf("%s of %#x: %#x, want %#x", w.code, o[:4], all[i], want)
				}
				if i&5 != 4 {
					want = 0
				}
				if !agree(some[i], want, w) {
					t.Fatalf("%s of %#x in some lanes: %#x, want %#x", w.code, o[:4], some[i], want)
				}
			}
		})
	}
}

// run returns the results of a body: 8 bytes per thread.
func run(l *lab, body string, x device.Ptr, n int) device.Ptr {
	l.t.Helper()
	out := l.empty(8 * n)
	text := elementwise("\tmov.b16 %h0, 0;\n"+body, 8)
	l.ok(l.launch(l.function(text, "k"), n/64, 64, 0, args().Ptr(x).Ptr(out)))
	return out
}

func agree(got, want uint64, w word) bool {
	if got == want {
		return true
	}
	floats := strings.Contains(w.code, "%f4") || strings.Contains(w.code, "%d")
	if w.wide {
		x, y := math.Float64frombits(got), math.Float64frombits(want)
		return floats && x != x && y != y
	}
	x, y := f32of(uint32(got)), f32of(uint32(want))
	return floats && x != x && y != y
}
