package ptx

import (
	"errors"
	"strings"
	"testing"

	"siafu/cuda/device"
)

// frameOf returns a kernel k(p, q, n) with that body. p has 64 written words, q 64 unwritten
// ones. r0 is the thread, rd0 and rd1 are p and q, rd2 is p + 4 thread, and rd3 the same
// offset in s, 32 words of shared memory.
func frameOf(body string) string {
	return `.version 6.3
.target sm_70
.address_size 64
.const .align 4 .b8 c[16];
.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n)
{
	.reg .pred %p<4>;
	.reg .b16 %h<4>;
	.reg .b32 %r<10>;
	.reg .f32 %f<10>;
	.reg .b64 %rd<10>;
	.shared .align 4 .b8 s[128];
	.shared .align 4 .b8 s2[128];
	.shared .align 8 .b8 s3[12];
	.local .align 4 .b8 l[16];
	ld.param.u64 %rd0, [p];
	ld.param.u64 %rd1, [q];
	mov.u32 %r0, %tid.x;
	mul.wide.u32 %rd2, %r0, 4;
	mov.u64 %rd3, s;
	add.s64 %rd3, %rd3, %rd2;
	add.s64 %rd2, %rd2, %rd0;
` + strings.ReplaceAll(body, "; ", ";\n") + `
	ret;
}
`
}

// fault is a kernel with an error, and the same kernel without it.
type fault struct {
	name          string
	broken, right string
	kind          Kind
	at            string // in the text of the instruction that is named
	thread, block int
	says          string
	blocks        int
}

var faults = []fault{
	{name: "read behind an allocation", kind: OutOfBounds, thread: 31, at: "ld.global",
		says:   "256 bytes after the beginning of allocation 1 of 256 bytes",
		broken: "ld.global.u32 %r1, [%rd2+132];", right: "ld.global.u32 %r1, [%rd2+128];"},
	{name: "write before an allocation", kind: OutOfBounds, at: "st.global",
		broken: "st.global.u32 [%rd2+-4], %r0;", right: "st.global.u32 [%rd2], %r0;"},
	{name: "vector that begins inside", kind: OutOfBounds, at: "ld.global.v2", thread: 31, says: "8 bytes at",
		broken: "mul.wide.u32 %rd4, %r0, 8; add.s64 %rd4, %rd4, %rd0; ld.global.v2.u32 {%r1, %r2}, [%rd4+8];",
		right:  "mul.wide.u32 %rd4, %r0, 8; add.s64 %rd4, %rd4, %rd0; ld.global.v2.u32 {%r1, %r2}, [%rd4];"},
	{name: "vector whose end is outside, behind one that is not", kind: OutOfBounds, at: "st.shared.v2", thread: 1,
		says: "8 bytes after the beginning of shared variable s3 of 12",
		broken: "mul.wide.u32 %rd4, %r0, 8; mov.u64 %rd5, s3; add.s64 %rd4, %rd4, %rd5; setp.lt.u32 %p0, %r0, 2; @%p0 " +
			"st.shared.v2.u32 [%rd4], {%r0, %r0};",
		right: "mul.wide.u32 %rd4, %r0, 8; mov.u64 %rd5, s3; add.s64 %rd4, %rd4, %rd5; setp.lt.u32 %p0, %r0, 1; @%p0 " +
			"st.shared.v2.u32 [%rd4], {%r0, %r0};"},
	{name: "no address", kind: OutOfBounds, at: "ld.u32", says: "which is not an address",
		broken: "mov.u64 %rd4, 0; ld.u32 %r1, [%rd4];", right: "ld.u32 %r1, [%rd2];"},
	{name: "behind a shared variable, in the next one", kind: OutOfBounds, at: "st.shared", thread: 31,
		says:   "128 bytes after the beginning of shared variable s of 128",
		broken: "mov.u64 %rd5, s2; st.shared.u32 [%rd3+4], %r0;", right: "st.shared.u32 [%rd3], %r0;"},
	{name: "behind a local variable", kind: OutOfBounds, at: "st.local", says: "local variable l",
		broken: "st.local.u32 [l+16], %r0;", right: "st.local.u32 [l+12], %r0;"},
	{name: "behind the parameters", kind: OutOfBounds, at: "ld.param.u32 %r1", says: "the parameters",
		broken: "ld.param.u32 %r1, [n+4];", right: "ld.param.u32 %r1, [n];"},
	{name: "shared address in a global instruction", kind: OutOfBounds, at: "st.global",
		broken: "st.global.u32 [%rd3], %r0;", right: "st.shared.u32 [%rd3], %r0;"},
	{name: "shared address in a generic instruction", kind: OutOfBounds, at: "st.u32",
		broken: "st.u32 [%rd3], %r0;", right: "cvta.shared.u64 %rd3, %rd3; st.u32 [%rd3], %r0;"},
	{name: "write of a constant", kind: OutOfBounds, at: "st.global", says: "variable c",
		broken: "mov.u64 %rd4, c; st.global.u32 [%rd4], %r0;", right: "mov.u64 %rd4, c; ld.const.u32 %r1, [%rd4];"},
	{name: "misaligned word", kind: Misaligned, at: "ld.global.u32 %r1", says: "not a multiple of 4",
		broken: "ld.global.u32 %r1, [%rd0+2];", right: "ld.global.u16 %r1, [%rd0+2];"},
	{name: "misaligned vector", kind: Misaligned, at: "ld.global.v4", says: "not a multiple of 16",
		broken: "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+8];", right: "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd0+16];"},
	{name: "global memory that nobody wrote", kind: Uninitialised, at: "ld.global", says: "allocation 2",
		broken: "ld.global.u32 %r1, [%rd1];",
		right:  "setp.ne.s32 %p0, %r0, 0; @!%p0 st.global.u32 [%rd1], 1; @!%p0 ld.global.u32 %r1, [%rd1];"},
	{name: "a byte that nobody wrote", kind: Uninitialised, at: "ld.global.u32",
		broken: "setp.eq.s32 %p0, %r0, 0; @%p0 st.global.u8 [%rd1], %r0; @%p0 st.global.u16 [%rd1+2], %h0; @%p0 ld.global.u32 %r1, [%rd1];",
		right: "setp.eq.s32 %p0, %r0, 0; @%p0 st.global.u16 [%rd1], %h0; @%p0 st.global.u16 [%rd1+2], %h0; " +
			"@%p0 ld.global.u32 %r1, [%rd1];"},
	{name: "shared memory of the block before", kind: Uninitialised, at: "ld.shared", blocks: 2, block: 1,
		broken: "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 0; @%p0 st.shared.u32 [%rd3], %r0; ld.shared.u32 %r2, [%rd3];",
		right:  "st.shared.u32 [%rd3], %r0; ld.shared.u32 %r2, [%rd3];"},
	{name: "local memory of another thread", kind: Uninitialised, at: "ld.local", thread: 1,
		broken: "setp.eq.u32 %p0, %r0, 0; @%p0 st.local.u32 [l], %r0; ld.local.u32 %r2, [l];",
		right:  "st.local.u32 [l], %r0; ld.local.u32 %r2, [l];"},
	{name: "atomic on memory that nobody wrote", kind: Uninitialised, at: "red.global",
		broken: "red.global.add.u32 [%rd1], 1;", right: "red.global.add.u32 [%rd0], 1;"},
	{name: "two writes of a word", kind: Race, at: "st.shared", thread: 1, says: "a write that races with a write by thread [0 0 0]",
		broken: "st.shared.u32 [s], %r0;", right: "st.shared.u32 [%rd3], %r0;"},
	{name: "no barrier between warps", kind: Race, at: "st.global", thread: 32, says: "a write that races with a read by thread [0 0 0]",
		broken: "st.global.u32 [%rd2], %r0; xor.b32 %r1, %r0, 32; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd4, %rd4, " +
			"%rd0; ld.global.u32 %r2, [%rd4];",
		right: "st.global.u32 [%rd2], %r0; xor.b32 %r1, %r0, 32; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd4, %rd4, %rd0; bar.sync " +
			"0; ld.global.u32 %r2, [%rd4];"},
	{name: "no barrier before memory is used again", kind: Race, at: "st.shared.u32 [%rd3], 5", thread: 31, says: "and others",
		broken: "st.shared.u32 [%rd3], %r0; bar.sync 0; ld.shared.u32 %r1, [s+124]; st.shared.u32 [%rd3], 5;",
		right:  "st.shared.u32 [%rd3], %r0; bar.sync 0; ld.shared.u32 %r1, [s+124]; bar.sync 0; st.shared.u32 [%rd3], 5;"},
	{name: "no barrier of the warp", kind: Race, at: "ld.shared", thread: 0, says: "a read that races with a write by thread [1 0 0]",
		broken: "st.shared.u32 [%rd3], %r0; xor.b32 %r1, %r0, 1; mul.wide.u32 %rd4, %r1, 4; mov.u64 %rd5, s; add.s64 %rd4, %rd4, " +
			"%rd5; ld.shared.u32 %r2, [%rd4];",
		right: "st.shared.u32 [%rd3], %r0; xor.b32 %r1, %r0, 1; mul.wide.u32 %rd4, %r1, 4; mov.u64 %rd5, s; add.s64 %rd4, %rd4, %rd5; " +
			"bar.warp.sync -1; ld.shared.u32 %r2, [%rd4]; bar.warp.sync -1; st.shared.u32 [%rd3], %r2;"},
	{name: "a barrier of other lanes of the warp", kind: Race, at: "ld.shared", thread: 0,
		broken: "mov.u32 %r3, 0x55555555; and.b32 %r4, %r0, 1; shl.b32 %r3, %r3, %r4; st.shared.u32 [%rd3], %r0; xor.b32 %r1, %r0, 1; " +
			"mul.wide.u32 %rd4, %r1, 4; mov.u64 %rd5, s; add.s64 %rd4, %rd4, %rd5; bar.warp.sync %r3; ld.shared.u32 %r2, [%rd4];",
		right: "mov.u32 %r3, 3; and.b32 %r4, %r0, 30; shl.b32 %r3, %r3, %r4; st.shared.u32 [%rd3], %r0; xor.b32 %r1, %r0, 1; " +
			"mul.wide.u32 %rd4, %r1, 4; mov.u64 %rd5, s; add.s64 %rd4, %rd4, %rd5; bar.warp.sync %r3; ld.shared.u32 %r2, [%rd4];"},
	{name: "blocks that write the same", kind: Race, at: "st.global", blocks: 2, block: 1, says: "block [0 0 0]",
		broken: "st.global.u32 [%rd2], %r0;",
		right:  "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd4, %r1, 128; add.s64 %rd2, %rd2, %rd4; st.global.u32 [%rd2], %r0;"},
	{name: "a block that reads what one wrote", kind: Race, at: "ld.global", blocks: 2, block: 1,
		broken: "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 0; @%p0 st.global.u32 [%rd2], %r0; @!%p0 ld.global.u32 %r2, [%rd2];",
		right:  "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 0; @%p0 st.global.u32 [%rd2], %r0; @!%p0 ld.global.u32 %r2, [%rd2+128];"},
	{name: "a block that writes what an earlier one read", kind: Race, at: "st.global", blocks: 3, block: 2,
		says:   "a write that races with a read",
		broken: "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 2; @%p0 st.global.u32 [%rd2], %r0; @!%p0 ld.global.u32 %r2, [%rd2];",
		right:  "ld.global.u32 %r2, [%rd2];"},
	{name: "a block that writes what it and an earlier one read", kind: Race, at: "st.global", blocks: 2, block: 1, says: "and others",
		broken: "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 1; ld.global.u32 %r2, [%rd2]; bar.sync 0; @%p0 st.global.u32 [%rd2], %r0;",
		right: "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p0, %r1, 1; ld.global.u32 %r2, [%rd2]; bar.sync 0; @%p0 " +
			"st.global.u32 [%rd2+128], %r0;"},
	{name: "a word that all lanes read and one writes", kind: Race, at: "st.global", thread: 31, says: "and others",
		broken: "ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p0, %r0, 31; @%p0 st.global.u32 [%rd0], %r0;",
		right:  "ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p0, %r0, 31; bar.warp.sync -1; @%p0 st.global.u32 [%rd0], %r0;"},
	{name: "a word that all lanes read and the first one writes", kind: Race, at: "st.global", says: "and others",
		broken: "ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p0, %r0, 0; @%p0 st.global.u32 [%rd0], %r0;",
		right:  "ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p0, %r0, 0; bar.warp.sync -1; @%p0 st.global.u32 [%rd0], %r0;"},
	{name: "a word that two warps read and one writes", kind: Race, at: "st.global", thread: 32, says: "and others",
		broken: "ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p0, %r0, 32; bar.warp.sync -1; @%p0 st.global.u32 [%rd0], %r0;",
		right:  "ld.global.u32 %r2, [%rd0]; setp.eq.u32 %p0, %r0, 32; bar.sync 0; @%p0 st.global.u32 [%rd0], %r0;"},
	{name: "an atomic beside a write", kind: Race, at: "atom.global", thread: 1,
		broken: "setp.eq.u32 %p0, %r0, 0; @%p0 st.global.u32 [%rd0], 1; atom.global.add.u32 %r1, [%rd0], 1;",
		right:  "atom.global.add.u32 %r1, [%rd0], 1; bar.sync 0; setp.eq.u32 %p0, %r0, 0; @%p0 ld.global.u32 %r1, [%rd0];"},
	{name: "a read that races with atomics", kind: Race, at: "ld.global", thread: 0,
		broken: "red.global.add.u32 [%rd0], 1; ld.global.u32 %r1, [%rd0];",
		right:  "red.global.add.u32 [%rd0], 1; ld.relaxed.gpu.global.u32 %r1, [%rd0];"},
	{name: "a byte within a word", kind: Race, at: "st.global.u8", thread: 1,
		broken: "and.b32 %r1, %r0, 31; shr.u32 %r1, %r1, 1; cvt.u64.u32 %rd4, %r1; add.s64 %rd4, %rd4, %rd0; cvt.u16.u32 %h0, " +
			"%r0; st.global.u8 [%rd4], %h0;",
		right: "cvt.u64.u32 %rd4, %r0; add.s64 %rd4, %rd4, %rd0; cvt.u16.u32 %h0, %r0; st.global.u8 [%rd4], %h0;"},
	{name: "a barrier in one branch", kind: DivergentBarrier, at: "bar.sync 0", thread: 7, says: "other threads",
		broken: "setp.lt.u32 %p0, %r0, 7; @%p0 bra A;\n bar.sync 0;\n bra B;\nA: bar.sync 1;\nB:",
		right:  "setp.lt.u32 %p0, %r0, 7; @%p0 bra A;\n mov.u32 %r1, 1;\n bra B;\nA: mov.u32 %r1, 2;\nB: bar.sync 0;"},
	{name: "a barrier behind threads that ended", kind: DivergentBarrier, at: "bar.sync", thread: 0, says: "has ended",
		broken: "setp.lt.u32 %p0, %r0, 7; @%p0 ret; bar.sync 0;", right: "setp.lt.u32 %p0, %r0, 7; bar.sync 0; @%p0 ret;"},
	{name: "a shuffle that half of the lanes come to", kind: InactiveLane, at: "shfl", thread: 16, says: "lane 0, which has ended",
		broken: "setp.lt.u32 %p0, %r0, 16; @%p0 bra A;\n shfl.sync.down.b32 %r1, %r0, 1, 31, -1;\nA:",
		right:  "setp.lt.u32 %p0, %r0, 16; @%p0 bra A;\n mov.u32 %r1, 1;\nA: shfl.sync.down.b32 %r1, %r0, 1, 31, -1;"},
	{name: "a shuffle while others wait at a barrier", kind: InactiveLane, at: "shfl", thread: 16, says: "lane 0, which is at line",
		broken: "setp.lt.u32 %p0, %r0, 16; @%p0 bra A;\n shfl.sync.down.b32 %r1, %r0, 1, 31, -1;\nA: bar.sync 0;",
		right:  "setp.lt.u32 %p0, %r0, 16; @%p0 bra A;\n shfl.sync.down.b32 %r1, %r0, 1, 31, 0xffff0000;\nA: bar.sync 0;"},
	{name: "a shuffle from a lane without a part", kind: InactiveLane, at: "shfl.sync.idx", thread: 16, says: "from lane 3",
		broken: "setp.lt.u32 %p0, %r0, 16; @%p0 bra A;\n shfl.sync.idx.b32 %r1, %r0, 3, 31, 0xffff0000;\nA:",
		right:  "setp.lt.u32 %p0, %r0, 16; @%p0 bra A;\n shfl.sync.idx.b32 %r1, %r0, 17, 31, 0xffff0000;\nA:"},
	{name: "a vote with a mask without the lane", kind: InactiveLane, at: "vote", thread: 1, says: "lane 1 is not in the mask",
		broken: "vote.sync.ballot.b32 %r1, %p0, 1;", right: "vote.sync.ballot.b32 %r1, %p0, -1;"},
	{name: "a loop without an end", kind: Endless, at: "bra", says: "a warp has run",
		broken: "A: add.s32 %r1, %r1, 1; setp.ge.s32 %p0, %r1, 0; add.s32 %r1, %r1, -1; @%p0 bra A;",
		right:  "mov.u32 %r1, 0; A: add.s32 %r1, %r1, 1; setp.lt.s32 %p0, %r1, 100; @%p0 bra A;"},
	{name: "a trap", kind: Trapped, at: "trap", thread: 3,
		broken: "setp.eq.u32 %p0, %r0, 3; @%p0 trap;", right: "setp.eq.u32 %p0, %r0, 64; @%p0 trap;"},
}

// TestFaults: the error of each broken kernel is found with its position, and the correct
// kernel has no finding.
func TestFaults(t *testing.T) {
	found := map[Kind]bool{}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			if err := f.run(t, f.right); err != nil {
				t.Errorf("the right kernel: %v", err)
			}
			var got *Finding
			if err := f.run(t, f.broken); !errors.As(err, &got) {
				t.Fatalf("the broken kernel: %v, want a finding", err)
			}
			if got.Kind != f.kind || !strings.Contains(got.Text, f.at) || !strings.Contains(got.Error(), f.says) {
				t.Errorf("%v; want %v at %q that says %q", got, f.kind, f.at, f.says)
			}
			if got.Thread[0] != f.thread || got.Block[0] != f.block || got.Kernel != "k" || got.Line == 0 {
				t.Errorf("%v; want thread %d of block %d", got, f.thread, f.block)
			}
			found[got.Kind] = true
		})
	}
	for k := OutOfBounds; k < BadLaunch; k++ {
		if !found[k] {
			t.Errorf("no kernel is broken such that it is %q", k)
		}
	}
}

// run launches a body with 32 threads, or with 64 if a barrier orders warps.
func (f *fault) run(t *testing.T, body string) error {
	l := newLab(t, Settings{Budget: 10000})
	threads := 32
	if strings.Contains(f.name, "warps") {
		threads = 64
	}
	p, q := upload(l, make([]uint32, 64)), l.empty(256)
	return l.launch(l.function(frameOf(body), "k"), max(f.blocks, 1), threads, 0, args().Ptr(p).Ptr(q).Int32(0))
}

// TestFreedMemory: accesses to freed memory and copies of it are found.
func TestFreedMemory(t *testing.T) {
	l := newLab(t, Settings{})
	f := l.function(frameOf("ld.global.u32 %r1, [%rd2];"), "k")
	p, q := upload(l, make([]uint32, 64)), l.empty(256)
	l.ok(l.d.Free(p))
	l.empty(256)
	var got *Finding
	if err := l.s.CopyOut(make([]byte, 4), p); !errors.As(err, &got) || got.Kind != OutOfBounds {
		t.Errorf("a copy of freed memory: %v", err)
	}
	err := l.launch(f, 1, 32, 0, args().Ptr(p).Ptr(q).Int32(0))
	if !errors.As(err, &got) || got.Kind != OutOfBounds || !strings.Contains(err.Error(), "allocation 1 of 256 bytes") ||
		!strings.Contains(err.Error(), "freed") {
		t.Errorf("a read of freed memory: %v", err)
	}
	if _, again := l.d.Alloc(4); again == nil || again.Error() != err.Error() {
		t.Errorf("an allocation on a device that has failed: %v", again)
	}
}

// TestLaunchesOrderAccesses: two launches may write and read the same memory.
func TestLaunchesOrderAccesses(t *testing.T) {
	l := newLab(t, Settings{})
	f := l.function(frameOf("ld.global.u32 %r1, [%rd0]; bar.sync 0; setp.eq.u32 %p0, %r0, 0; @%p0 st.global.u32 [%rd0], 7;"), "k")
	p := upload(l, make([]uint32, 64))
	for range 3 {
		l.ok(l.launch(f, 1, 64, 0, args().Ptr(p).Ptr(p).Int32(0)))
	}
}

// TestBadLaunches: invalid shapes and parameters are refused, and the device continues.
func TestBadLaunches(t *testing.T) {
	l := newLab(t, Settings{})
	f := l.function(frameOf(""), "k")
	few := l.function(strings.Replace(frameOf(""), ".param .u32 n)", ".param .u32 n)\n.maxntid 8, 4, 1", 1), "k")
	p := l.empty(256)
	good := args().Ptr(p).Ptr(p).Int32(0)
	for name, err := range map[string]error{
		"too few parameters":   l.s.Launch(f, device.Launch{}, args().Ptr(p)),
		"a larger parameter":   l.s.Launch(f, device.Launch{}, args().Ptr(p).Ptr(p).Int64(0)),
		"a smaller parameter":  l.s.Launch(f, device.Launch{}, args().Ptr(p).Int32(0).Int32(0)),
		"too many threads":     l.s.Launch(f, device.Launch{Block: [3]int{32, 33}}, good),
		"too many of a kernel": l.s.Launch(few, device.Launch{Block: [3]int{33}}, good),
		"too much memory":      l.s.Launch(f, device.Launch{Shared: 48 << 10}, good),
		"too large a grid":     l.s.Launch(f, device.Launch{Grid: [3]int{1, 1 << 16}}, good),
	} {
		var got *Finding
		if !errors.As(err, &got) || got.Kind != BadLaunch {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.ok(l.s.Launch(f, device.Launch{}, good))
	l.ok(l.s.Launch(few, device.Launch{Block: [3]int{32}}, good))
	l.ok(l.s.Synchronize())
}
