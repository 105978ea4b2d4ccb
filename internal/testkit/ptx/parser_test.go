package ptx

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"siafu/cuda/device"
)

// TestBadText refuses each text at its line.
func TestBadText(t *testing.T) {
	for _, c := range []struct {
		name, text, says string
		line             int
	}{
		{"an instruction", frameOf("frobnicate.b32 %r1, %r2;"), "unknown instruction: frobnicate.b32", 23},
		{"a modifier", frameOf("add.sideways.s32 %r1, %r2, %r3;"), "unknown instruction: add.sideways.s32", 23},
		{"a matrix instruction", frameOf("mma.sync.aligned.m16n8k8.row.col.f32 %r1;"), "unknown instruction: mma", 23},
		{"a register", frameOf("add.s32 %r1, %r2, %x3;"), "%x3", 23},
		{"a register of another size", frameOf("add.s32 %r1, %r2, %rd3;"), "another type", 23},
		{"a predicate as a number", frameOf("add.s32 %r1, %r2, %p1;"), "another type", 23},
		{"a number as a guard", frameOf("@%r1 add.s32 %r1, %r2, %r3;"), "not a predicate", 23},
		{"too few operands", frameOf("add.s32 %r1, %r2;"), "too few operands", 23},
		{"too many operands", frameOf("add.s32 %r1, %r2, %r3, %r4;"), "4 operands", 23},
		{"a label", frameOf("bra NOWHERE;"), "no label NOWHERE", 23},
		{"a second label", frameOf("A: mov.u32 %r1, 1;\nA: mov.u32 %r1, 1;"), "second label", 24},
		{"a variable", frameOf("mov.u64 %rd4, nothing;"), "no variable nothing", 23},
		{"a variable of another space", frameOf("ld.global.u32 %r1, [s];"), "shared variable", 23},
		{"a barrier of some threads", frameOf("bar.sync 0, 64;"), "barriers of a part of a block", 23},
		{"a special register", frameOf("mov.u32 %r1, %envreg3;"), "%envreg3", 23},
		{"an end in the middle", frameOf("")[:strings.Index(frameOf(""), "ld.param.u64")+12], "unexpected end of the text", 0},
		{"a call of nobody", frameOf("call.uni nobody;"), "not a function of the module", 23},
		{"addresses of 32 bits", ".version 6.3\n.target sm_70\n.address_size 32\n", "only 64", 3},
		{"a string without an end", ".version 6.3\n.pragma \"x\n", "string", 2},
		{"no directive", "hello\n", "unknown directive", 1},
		{"a huge variable", ".version 6.3\n.global .b8 x[99999999999];\n", "not in 0..", 2},
		{"many registers", frameOf(".reg .b32 %z<99999999>;"), "not in 0..", 23},
		{"recursion", ".version 6.3\n.func f();\n.func f()\n{\ncall f;\nret;\n}\n.entry k()\n{\ncall f;\n}\n", "recursion", 5},
		{"functions that call two each", doubling(20), "instructions", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(Settings{}).Load("bad.ptx", c.text)
			var got *Error
			if !errors.As(err, &got) || !strings.Contains(err.Error(), c.says) || got.Module != "bad.ptx" {
				t.Fatalf("%v, want an error that says %q", err, c.says)
			}
			if c.line != 0 && (got.Line != c.line || got.Text == "") {
				t.Errorf("%v, want line %d", err, c.line)
			}
		})
	}
}

// doubling returns a module of functions, each calling the next one twice.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(".version 6.3\n.func f0() { ret; }\n")
	name := func(i int) string { return "f" + strconv.Itoa(i) }
	for i := range n {
		b.WriteString(".func " + name(i+1) + "()\n{ call " + name(i) + "; call " + name(i) + "; ret; }\n")
	}
	b.WriteString(".entry k() { call " + name(n) + "; ret; }\n")
	return b.String()
}

// TestManyLoops loads more nested loops than maxLoops.
func TestManyLoops(t *testing.T) {
	var open, close strings.Builder
	for i := range 500 {
		open.WriteString("L" + strconv.Itoa(i) + ": add.s32 %r1, %r1, 1;\n")
		close.WriteString("setp.lt.s32 %p1, %r1, 100; @%p1 bra L" + strconv.Itoa(499-i) + ";\n")
	}
	l := newLab(t, Settings{})
	p := l.empty(256)
	l.ok(l.launch(l.function(frameOf("mov.u32 %r1, 0;\n"+open.String()+close.String()), "k"), 1, 32, 0, args().Ptr(p).Ptr(p).Int32(0)))
}

// FuzzLoad searches for texts that crash the program, or run without ending.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*.ptx")
	if err != nil || len(files) == 0 {
		f.Fatal("no texts", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, c := range faults {
		f.Add(frameOf(c.broken))
		f.Add(frameOf(c.right))
	}
	f.Add(doubling(4))
	f.Fuzz(func(t *testing.T, text string) {
		begin := time.Now()
		defer func() {
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		}()
		d := New(Settings{Memory: 1 << 20, Budget: 2000})
		s, err := d.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.Load("fuzz.ptx", text)
		if err != nil {
			if strings.Contains(err.Error(), "interpreter failed") {
				t.Fatal(err)
			}
			return
		}
		p, err := d.Alloc(4096)
		if err != nil {
			return
		}
		if err := s.Set(p, 0, 4096); err != nil {
			t.Fatal(err)
		}
		for _, k := range m.(*loadedModule).kernels {
			if k.sharedLen > 48<<10 {
				continue // Launch refuses it
			}
			err := d.execute(k, device.Launch{Grid: [3]int{2, 1, 1}, Block: [3]int{33, 1, 1}}, zeros(k, p))
			if err != nil && strings.Contains(err.Error(), "interpreter failed") {
				t.Fatal(err)
			}
		}
	})
}

// zeros returns parameters for k: addresses for 8 bytes, else zeros.
func zeros(k *kernel, p device.Ptr) []byte {
	b := make([]byte, k.paramSize)
	for i, v := range k.params {
		if v.size == 8 {
			r := region{data: b}
			r.setWord(uint64(k.offsets[i]), 8, uint64(p))
		}
	}
	return b
}

// TestFunctionsOfModules finds functions and variables by name.
func TestFunctionsOfModules(t *testing.T) {
	l := newLab(t, Settings{})
	m, err := l.d.Load("m.ptx", frameOf(""))
	l.ok(err)
	if _, err := m.Function("other"); !errors.Is(err, device.ErrNotFound) {
		t.Errorf("a function that is not there: %v", err)
	}
	if _, _, err := m.Global("other"); !errors.Is(err, device.ErrNotFound) {
		t.Errorf("a variable that is not there: %v", err)
	}
	f, err := m.Function("k")
	l.ok(err)
	l.ok(m.Unload())
	if err := l.s.Launch(nil, device.Launch{}, nil); err == nil {
		t.Error("a launch of nothing")
	}
	if err := l.s.Launch(f, device.Launch{}, nil); err == nil {
		t.Error("a launch of a function whose module is gone")
	}
}

// TestTextWithNotes: directives for debuggers and optimisers are skipped; variables have each
// form.
func TestTextWithNotes(t *testing.T) {
	l := newLab(t, Settings{})
	m, err := l.d.Load("notes.ptx", `/* a comment
of two lines */
.version 7.0
.target sm_70, debug
.address_size 64
.file 1 "k.cu"
.pragma "nounroll";
.global .f32 x = 1.5;
.visible .const .align 8 .f64 y[3] = {1.0, 0d4000000000000000, 3};
.global .u64 to = y + 8;
.weak .global .align 4 .s32 z[2][2] = {{1, 2}, {-3}};
.extern .func nobody (.param .b32 p);
.visible .entry k(.param .u64 .ptr .global .align 8 out)
.reqntid 1
.minnctapersm 2
{
	.reg .b64 %a<2>, %b;
	.reg .f64 %d;
	.reg .f32 %f;
	.reg .s32 %i;
	.loc 1 3 0
	ld.param.u64 %a0, [out];
	ld.global.u64 %b, [to];
	ld.f64 %d, [%b];
	ld.global.f32 %f, [x];
	ld.global.s32 %i, [z+8];
	st.global.f64 [%a0], %d;
	st.global.f32 [%a0+8], %f;
	st.global.s32 [%a0+12], %i;
	ret;
}
.section .debug_info { .b8 1, 2 }
`)
	l.ok(err)
	f, err := m.Function("k")
	l.ok(err)
	out := l.empty(16)
	l.ok(l.launch(f, 1, 1, 0, args().Ptr(out)))
	if got := read(l, make([]uint32, 4), out); got[0] != 0 || got[1] != 0x40000000 || f32of(got[2]) != 1.5 || int32(got[3]) != -3 {
		t.Errorf("%#x", got)
	}
}
