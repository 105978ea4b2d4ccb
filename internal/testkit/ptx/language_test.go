package ptx

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCalls runs calls with a struct, constants at a generic address, and a variable whose
// value is an address.
func TestCalls(t *testing.T) {
	l := newLab(t, Settings{})
	f := l.file("language.ptx", "called")
	const n = 128
	x := randoms(rand.New(rand.NewPCG(21, 22)), n)
	table := []float32{1, 2, 4, 8, 16, 32, 64, 128}
	weighed := func(x float32, i, k int) float32 {
		if k < 0 {
			return -1
		}
		s := float32(0)
		for _, w := range table[:k] {
			s = fused(w, x, s)
		}
		return s + float32(i)
	}
	want := make([]float32, n)
	for i := range want {
		if want[i] = weighed(x[i], i, i%9-1); i%2 != 0 {
			want[i] = weighed(x[i], i, 2)
		}
	}
	y := l.empty(4 * n)
	a := args().Ptr(upload(l, x)).Ptr(y)
	l.ok(l.launch(f, 2, 64, 0, a))
	l.ok(l.launch(f, 2, 64, 0, a))
	same(t, "called", read(l, make([]float32, n), y), want)

	p, size, err := f.(*entry).module.Global("calls")
	l.ok(err)
	if got := read(l, make([]int32, 1), p); got[0] != 9 || size != 4 {
		t.Errorf("calls is %d of %d bytes, want 9 of 4", got[0], size)
	}
}

// TestLocalArray indexes thread-local memory with computed values.
func TestLocalArray(t *testing.T) {
	l := newLab(t, Settings{})
	const n = 256
	y := l.empty(4 * n)
	l.ok(l.launch(l.file("language.ptx", "digits"), 4, 64, 0, args().Ptr(y)))
	for i, got := range read(l, make([]int32, n), y) {
		var list []int
		for v := i; v > 0; v /= 10 {
			list = append(list, v%10)
		}
		want := 0
		for k := range list {
			want += list[k] * list[(k*7+i)%len(list)]
		}
		if int(got) != want {
			t.Fatalf("digits of %d: %d, want %d", i, got, want)
		}
	}
}

// TestDivergentLoops: each lane leaves a loop at another time, and all vote after it.
func TestDivergentLoops(t *testing.T) {
	l := newLab(t, Settings{})
	const n = 192
	y := l.empty(8 * n)
	l.ok(l.launch(l.file("language.ptx", "collatz"), 2, 96, 0, args().Int32(n).Ptr(y)))
	got := read(l, make([]int32, 2*n), y)
	steps, even := make([]int32, n), make([]int32, n/32)
	for i := range steps {
		for v := i + 1; v != 1; steps[i]++ {
			if v%2 == 0 {
				v /= 2
			} else {
				v = 3*v + 1
			}
		}
		even[i/32] += 1 - steps[i]%2
	}
	for i := range n {
		if got[i] != steps[i] || got[n+i] != even[i/32] {
			t.Fatalf("thread %d: %d and %d, want %d and %d", i, got[i], got[n+i], steps[i], even[i/32])
		}
	}
}

// TestNarrow rounds like quantisation, also near a power of two.
func TestNarrow(t *testing.T) {
	l := newLab(t, Settings{})
	const n = 256
	x := randoms(rand.New(rand.NewPCG(23, 24)), n)
	half, b, e := l.empty(2*n), l.empty(n), l.empty(4*n)
	l.ok(l.launch(l.file("language.ptx", "narrow"), 4, 64, 0, args().Ptr(upload(l, x)).Ptr(half).Ptr(b).Ptr(e)))
	halves, bytes, powers := read(l, make([]uint16, n), half), read(l, make([]int8, n), b), read(l, make([]float32, n), e)
	for i, v := range x {
		u := math.Float32bits(v)
		if want := uint16((u + 0x7fff + u>>16&1) >> 16); halves[i] != want {
			t.Errorf("bfloat16 of %v: %#x, want %#x", v, halves[i], want)
		}
		if want := int8(max(-127, min(127, math.RoundToEven(float64(v*40))))); bytes[i] != want {
			t.Errorf("int8 of %v: %d, want %d", v, bytes[i], want)
		}
		if want := math.Exp(float64(v)); math.Abs(float64(powers[i])-want) > 1e-6*want {
			t.Errorf("e^%v: %v, want %v", v, powers[i], want)
		}
	}
}

// TestSharedVariableOfFunction calls a function twice: its shared variable is the same memory,
// its local one is not.
func TestSharedVariableOfFunction(t *testing.T) {
	l := newLab(t, Settings{})
	f := l.function(`.version 6.3
.target sm_70
.address_size 64
.func (.param .b32 old) exchange(.param .b32 new)
{
	.reg .pred %p;
	.reg .b32 %r<3>;
	.shared .align 4 .b8 kept[4];
	ld.param.u32 %r0, [new];
	setp.eq.u32 %p, %r0, 7;
	@%p bra FIRST;
	ld.shared.u32 %r1, [kept];
	st.param.b32 [old], %r1;
	ret;
FIRST:
	st.shared.u32 [kept], %r0;
	st.param.b32 [old], 0;
	ret;
}
.visible .entry k(.param .u64 y)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<2>;
	.param .b32 given;
	.param .b32 taken;
	st.param.b32 [given], 7;
	call.uni (taken), exchange, (given);
	st.param.b32 [given], 8;
	call.uni (taken), exchange, (given);
	ld.param.b32 %r0, [taken];
	ld.param.u64 %rd0, [y];
	st.global.u32 [%rd0], %r0;
	ret;
}
`, "k")
	y := l.empty(4)
	l.ok(l.launch(f, 1, 1, 0, args().Ptr(y)))
	if got := read(l, make([]uint32, 1), y); got[0] != 7 {
		t.Errorf("%d, want 7", got[0])
	}
}

// TestOrderOfBlocks: a loop precedes its successors, and inside it blocks follow their
// predecessors.
func TestOrderOfBlocks(t *testing.T) {
	// Lines are blocks: 1 leads to the loop 2 {3 or 4, 4 {5}} and that to 6.
	branch := func(line, target int32) inst { return inst{flow: branch, guard: 1, line: line, target: target} }
	code := []inst{
		{flow: jump, line: 1, target: 2},
		{flow: leave, line: 6},
		branch(2, 4),
		{flow: jump, line: 4, target: 5},
		{flow: jump, line: 3, target: 3},
		branch(5, 3),
		branch(5, 2),
		{flow: jump, line: 5, target: 1},
	}
	labels := make([]int32, len(code))
	for i := range labels {
		labels[i] = int32(i)
	}
	var got []int32
	for _, in := range arrange(code, labels) {
		got = append(got, in.line)
	}
	if want := []int32{1, 2, 3, 4, 5, 5, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// warpKernel returns a kernel whose body computes r5 from r1, the thread's word.
func warpKernel(body string) string {
	return elementwise(body+"\ncvt.u64.u32 %rd5, %r5; st.global.u64 [%rd4], %rd5;", 8)
}

// TestLanes compares instructions of a warp with loops over its lanes.
func TestLanes(t *testing.T) {
	const n = 128
	l := newLab(t, Settings{})
	r := rand.New(rand.NewPCG(25, 26))
	x := make([]uint32, 4*n)
	for i := range x {
		x[i] = r.Uint32() % 7
	}
	at := func(i, lane int) uint32 { return x[4*(i&^31+lane)] }
	count := func(i int, of func(lane int) bool) (m uint32) {
		for lane := range 32 {
			m |= bit(of(lane)) << lane
		}
		return m
	}
	even := "and.b32 %r6, %r1, 1; setp.eq.u32 %p0, %r6, 0;"
	cases := []struct {
		name, code string
		want       func(i, lane int) uint32
	}{
		{"idx", "shfl.sync.idx.b32 %r5, %r1, 37, 31, -1;", func(i, lane int) uint32 { return at(i, 5) }},
		{"idx of eight", "shfl.sync.idx.b32 %r5, %r1, 3, 0x181f, -1;", func(i, lane int) uint32 { return at(i, lane&24|3) }},
		{"up", "shfl.sync.up.b32 %r5|%p1, %r1, 3, 0, -1; @%p1 add.s32 %r5, %r5, 100;", func(i, lane int) uint32 {
			if lane < 3 {
				return at(i, lane)
			}
			return at(i, lane-3) + 100
		}},
		{"down", "shfl.sync.down.b32 %r5|%p1, %r1, 3, 31, -1; @%p1 add.s32 %r5, %r5, 100;", func(i, lane int) uint32 {
			if lane > 28 {
				return at(i, lane)
			}
			return at(i, lane+3) + 100
		}},
		{"down of sixteen", "shfl.sync.down.b32 %r5, %r1, 9, 0x101f, -1;", func(i, lane int) uint32 {
			if lane&15 > 6 {
				return at(i, lane)
			}
			return at(i, lane+9)
		}},
		{"butterfly", "mov.u32 %r5, %r1; shfl.sync.bfly.b32 %r5, %r5, 21, 31, -1;", func(i, lane int) uint32 { return at(i, lane^21) }},
		{"each half its own", "and.b32 %r6, %r0, 16; mov.u32 %r7, 0xffff; shl.b32 %r7, %r7, %r6; shfl.sync.bfly.b32 %r5, %r1, 5, 31, %r7;",
			func(i, lane int) uint32 { return at(i, lane^5) }},
		{"ballot", even + "vote.sync.ballot.b32 %r5, %p0, -1;", func(i, lane int) uint32 {
			return count(i, func(o int) bool { return at(i, o)%2 == 0 })
		}},
		{"any and all", "setp.eq.u32 %p0, %r1, 6; vote.sync.any.pred %p1, %p0, -1; vote.sync.all.pred %p2, !%p0, -1; selp.b32 %r5, 1, 0, " +
			"%p1; @%p2 add.s32 %r5, %r5, 2;",
			func(i, lane int) uint32 {
				if count(i, func(o int) bool { return at(i, o) == 6 }) != 0 {
					return 1
				}
				return 2
			}},
		{"match", "match.any.sync.b32 %r5, %r1, -1;", func(i, lane int) uint32 {
			return count(i, func(o int) bool { return at(i, o) == at(i, lane) })
		}},
		{"active", even + "mov.u32 %r5, 0; @%p0 activemask.b32 %r5;", func(i, lane int) uint32 {
			if at(i, lane)%2 != 0 {
				return 0
			}
			return count(i, func(o int) bool { return at(i, o)%2 == 0 })
		}},
		{"mask of lower lanes", "mov.u32 %r5, %lanemask_lt;", func(i, lane int) uint32 { return 1<<lane - 1 }},
		{"threads that hold at a barrier", even + "bar.red.popc.u32 %r5, 0, %p0;", func(i, lane int) uint32 {
			c := 0
			for k := range 64 {
				c += int(1 - x[4*(i&^63+k)]%2)
			}
			return uint32(c)
		}},
		{"lanes that come one after another", `mov.u32 %r5, 0;
			setp.lt.u32 %p0, %r1, 3; @%p0 bra A;
			setp.eq.u32 %p1, %r1, 99; @%p1 ret;
			mov.u32 %r5, 1;
			A: shfl.sync.idx.b32 %r5, %r5, 2, 31, -1;`, func(i, lane int) uint32 { return bit(at(i, 2) >= 3) }},
	}
	px := upload(l, x)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out := l.empty(8 * n)
			l.ok(l.launch(l.function(warpKernel(c.code), "k"), n/64, 64, 0, args().Ptr(px).Ptr(out)))
			for i, got := range read(l, make([]uint64, n), out) {
				if want := c.want(i, i%32); uint32(got) != want {
					t.Fatalf("thread %d: %#x, want %#x", i, got, want)
				}
			}
		})
	}
}

// TestAtomics compares each atomic operation with a sequential loop in the order of threads.
func TestAtomics(t *testing.T) {
	const n = 64
	l := newLab(t, Settings{})
	x := make([]uint32, 4*n)
	for i := range x {
		x[i] = uint32(i*2654435761) >> 3
	}
	cases := map[string]func(old, b uint32) uint32{
		"add.u32": func(o, b uint32) uint32 { return o + b },
		"min.s32": func(o, b uint32) uint32 { return uint32(min(int32(o), int32(b))) },
		"max.u32": func(o, b uint32) uint32 { return max(o, b) },
		"and.b32": func(o, b uint32) uint32 { return o & b },
		"or.b32":  func(o, b uint32) uint32 { return o | b },
		"xor.b32": func(o, b uint32) uint32 { return o ^ b },
		"exch.b32": func(o, b uint32) uint32 {
			return b
		},
		"inc.u32": func(o, b uint32) uint32 {
			if o >= b {
				return 0
			}
			return o + 1
		},
		"dec.u32": func(o, b uint32) uint32 {
			if o == 0 || o > b {
				return b
			}
			return o - 1
		},
		"add.f32": func(o, b uint32) uint32 {
			return flushed(math.Float32bits(f32of(flushed(o)) + f32of(flushed(b))))
		},
	}
	px := upload(l, x)
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			const start = 0x3e000007
			// The word that all update follows the results.
			out := upload(l, append(make([]uint32, 2*n), start))
			text := warpKernel("mul.wide.u32 %rd2, %r0, 8; sub.s64 %rd3, %rd4, %rd2; atom.global." + name + " %r5, [%rd3+512], %r1;")
			l.ok(l.launch(l.function(text, "k"), 1, n, 0, args().Ptr(px).Ptr(out)))
			got := read(l, make([]uint32, 2*n+1), out)
			word := uint32(start)
			for i := range n {
				if got[2*i] != word {
					t.Fatalf("thread %d found %#x, want %#x", i, got[2*i], word)
				}
				word = f(word, x[4*i])
			}
			if got[2*n] != word {
				t.Errorf("the word is %#x, want %#x", got[2*n], word)
			}
		})
	}
}

// TestHalves converts all numbers of 16 bits to f32 and back, and others to the
// nearest.
func TestHalves(t *testing.T) {
	formats := []struct {
		k          kind
		frac, bias int
	}{{f16, 10, 15}, {bf16, 7, 127}}
	r := rand.New(rand.NewPCG(27, 28))
	for _, f := range formats {
		for u := range 1 << 16 {
			x := widened(uint64(u), f.k)
			if x != x {
				continue
			}
			if got := roundBits(x, nearest, f.frac, f.bias); int(got) != u {
				t.Fatalf("kind %d: %#x is %v is %#x", f.k, u, x, got)
			}
		}
		// The bits of positive numbers have the order of the numbers.
		for range 20000 {
			u := uint16(r.IntN((2*f.bias + 1) << f.frac))
			a, b := widened(uint64(u), f.k), widened(uint64(u)+1, f.k)
			if math.IsInf(b, 0) {
				continue
			}
			for _, part := range []float64{0.25, 0.5, 0.75} {
				x := a + (b-a)*part
				up1, down1 := u+1, u
				near := map[float64]uint16{0.25: u, 0.5: u + u&1, 0.75: u + 1}[part]
				for mode, want := range map[rounding]uint16{nearest: near, zero: down1, down: down1, up: up1} {
					if got := roundBits(x, mode, f.frac, f.bias); got != want {
						t.Fatalf("kind %d, rounding %d of %v: %#x, want %#x", f.k, mode, x, got, want)
					}
				}
			}
		}
		if got := roundBits(math.Inf(1), nearest, f.frac, f.bias); bits.OnesCount16(got) != 15-f.frac {
			t.Errorf("infinity is %#x", got)
		}
	}
}
