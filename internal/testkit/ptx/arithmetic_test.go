package ptx

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

// awkward returns float operands: ordinary ones, extreme ones, and ones whose sums are
// midpoints between two float32.
func awkward(r *rand.Rand) float32 {
	switch r.IntN(8) {
	case 0:
		return math.Float32frombits(r.Uint32())
	case 1:
		return math.Float32frombits(r.Uint32() & 0x807fffff) // not normal
	case 2:
		return float32(int32(r.Uint32())>>r.IntN(31)) * float32(math.Ldexp(1, r.IntN(40)-20))
	case 3:
		return math.Float32frombits(r.Uint32()&0x80000000 | uint32(60+r.IntN(20))<<23 | 1<<r.IntN(23))
	case 4:
		return []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, math.SmallestNonzeroFloat32,
			1 + 1.0/(1<<23), 1 - 1.0/(1<<24)}[r.IntN(8)]
	}
	return float32(r.NormFloat64())
}

// exactly returns a b + c of finite numbers, rounded once to float32, with arbitrary
// precision.
func exactly(a, b, c float32, mode big.RoundingMode) float32 {
	p := new(big.Float).SetPrec(2000).Mul(big.NewFloat(float64(a)), big.NewFloat(float64(b)))
	p.SetPrec(2000).Add(p, big.NewFloat(float64(c)))
	if p.Sign() == 0 {
		return float32(float64(a)*float64(b) + float64(c)) // IEEE 754 defines its sign
	}
	// For subnormal numbers the last place is 2^-149.
	prec := min(24, p.MantExp(nil)+149)
	if prec <= 0 {
		return below(p, mode)
	}
	q := new(big.Float).SetMode(mode).SetPrec(uint(prec)).Set(p)
	x, _ := q.Float64()
	if math.Abs(x) > math.MaxFloat32 {
		return beyond(x, mode)
	}
	return float32(x)
}

// below returns the result for numbers below the smallest float32, and beyond for numbers
// above the largest.
func below(p *big.Float, mode big.RoundingMode) float32 {
	tiny := float32(math.SmallestNonzeroFloat32)
	half := new(big.Float).SetMantExp(big.NewFloat(1), -150)
	away := mode == big.ToPositiveInf && p.Sign() > 0 || mode == big.ToNegativeInf && p.Sign() < 0 ||
		mode == big.ToNearestEven && new(big.Float).Abs(p).Cmp(half) > 0
	if !away {
		tiny = 0
	}
	return float32(math.Copysign(float64(tiny), float64(p.Sign())))
}

func beyond(x float64, mode big.RoundingMode) float32 {
	if mode == big.ToZero || mode == big.ToNegativeInf && x > 0 || mode == big.ToPositiveInf && x < 0 {
		return float32(math.Copysign(math.MaxFloat32, x))
	}
	return float32(math.Inf(int(math.Copysign(1, x))))
}

// TestFusedMultiplyAdd compares with arbitrary precision: random operands, and sums near the
// midpoint between two float32, where double rounding through float64 is wrong.
func TestFusedMultiplyAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	wrong := 0
	for i := range 200000 {
		a, b, c := awkward(r), awkward(r), awkward(r)
		if i%2 == 0 {
			// c is some power of two above a b, so that a b is about half of its last place.
			a = 1 + float32(r.IntN(1<<10))/(1<<20)
			b = 1 + float32(r.IntN(1<<10))/(1<<20)
			c = float32(math.Ldexp(1+float64(r.IntN(1<<23))/(1<<23), 22+r.IntN(4)))
			if r.IntN(2) == 0 {
				a = -a
			}
			shift := r.IntN(3) * 130
			b *= float32(math.Ldexp(1, -shift/2))
			a *= float32(math.Ldexp(1, shift/2-shift))
			c *= float32(math.Ldexp(1, -shift/2))
			c *= float32(math.Ldexp(1, shift/2-shift))
		}
		if i%4 == 1 {
			// Near the midpoint between two subnormal numbers.
			a = float32(math.Ldexp(1+1.0/(1<<23), -75))
			b = float32(math.Ldexp(float64(2*r.IntN(2)-1)*(1-1.0/(1<<23)), -75))
			c = float32(math.Ldexp(float64(r.IntN(1<<23)-1<<22), -149))
		}
		if x := float64(a)*float64(b) + float64(c); math.IsNaN(x) || math.IsInf(float64(a), 0) ||
			math.IsInf(float64(b), 0) || math.IsInf(float64(c), 0) {
			continue
		}
		want := exactly(a, b, c, big.ToNearestEven)
		if got := fused(a, b, c); math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%x * %x + %x = %x, want %x", a, b, c, got, want)
		}
		if naive := float32(float64(a)*float64(b) + float64(c)); math.Float32bits(naive) != math.Float32bits(want) {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("no operands whose sum is wrong when it is rounded twice: the test shows nothing")
	}
}

// TestDirectedRoundings compares add, sub, mul and fma of all roundings.
func TestDirectedRoundings(t *testing.T) {
	modes := map[string]big.RoundingMode{"rn": big.ToNearestEven, "rz": big.ToZero, "rm": big.ToNegativeInf, "rp": big.ToPositiveInf}
	var body strings.Builder
	names := []string{"rn", "rz", "rm", "rp"}
	for i, m := range names {
		fmt.Fprintf(&body, "fma.%s.f32 %%f4, %%f0, %%f1, %%f2; st.global.f32 [%%rd4+%d], %%f4;\n", m, 16*i)
		fmt.Fprintf(&body, "add.%s.f32 %%f4, %%f0, %%f2; st.global.f32 [%%rd4+%d], %%f4;\n", m, 16*i+4)
		fmt.Fprintf(&body, "mul.%s.f32 %%f4, %%f0, %%f1; st.global.f32 [%%rd4+%d], %%f4;\n", m, 16*i+8)
		fmt.Fprintf(&body, "sub.%s.f32 %%f4, %%f0, %%f2; st.global.f32 [%%rd4+%d], %%f4;\n", m, 16*i+12)
	}
	const n = 2048
	l := newLab(t, Settings{})
	f := l.function(elementwise(body.String(), 64), "k")
	r := rand.New(rand.NewPCG(13, 14))
	x := make([]float32, 4*n)
	for i := range x {
		for x[i] = awkward(r); math.Abs(float64(x[i])) > 1e18 || x[i] != x[i]; {
			x[i] = awkward(r)
		}
	}
	out := l.empty(64 * n)
	l.ok(l.launch(f, n/64, 64, 0, args().Ptr(upload(l, x)).Ptr(out)))
	got := read(l, make([]float32, 16*n), out)
	for i := range n {
		a, b, c := x[4*i], x[4*i+1], x[4*i+2]
		for j, m := range names {
			for k, v := range [4][3]float32{{a, b, c}, {a, 1, c}, {a, b, 0}, {a, 1, -c}} {
				want := exactly(v[0], v[1], v[2], modes[m])
				if k == 2 && want == 0 && got[16*i+4*j+k] == 0 {
					continue // a product plus 0 may have another sign than the product
				}
				g := got[16*i+4*j+k]
				if want == 0 && g == 0 && m == "rm" {
					continue
				}
				if math.Float32bits(g) != math.Float32bits(want) {
					t.Fatalf("%s, operation %d of %v: %x, want %x", m, k, v, g, want)
				}
			}
		}
	}
}

// elementwise returns a kernel k(x, y). Thread i loads the four words of x at 16 i into f0 to
// f3 and, as bits, into r1 to r4, rd6 and rd7. It writes to rd4 = y + bytes i.
func elementwise(body string, bytes int) string {
	return fmt.Sprintf(`.version 6.3
.target sm_70
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y)
{
	.reg .pred %%p<4>;
	.reg .b16 %%h<4>;
	.reg .b32 %%r<12>;
	.reg .f32 %%f<12>;
	.reg .b64 %%rd<12>;
	.reg .f64 %%d<8>;
	ld.param.u64 %%rd0, [x];
	ld.param.u64 %%rd1, [y];
	mov.u32 %%r8, %%ctaid.x;
	mov.u32 %%r9, %%ntid.x;
	mov.u32 %%r10, %%tid.x;
	mad.lo.s32 %%r0, %%r8, %%r9, %%r10;
	mul.wide.u32 %%rd2, %%r0, 16;
	add.s64 %%rd3, %%rd0, %%rd2;
	ld.global.v4.f32 {%%f0, %%f1, %%f2, %%f3}, [%%rd3];
	ld.global.v4.u32 {%%r1, %%r2, %%r3, %%r4}, [%%rd3];
	ld.global.v2.u64 {%%rd6, %%rd7}, [%%rd3];
	mul.wide.u32 %%rd4, %%r0, %d;
	add.s64 %%rd4, %%rd4, %%rd1;
%s
	ret;
}
`, bytes, body)
}
