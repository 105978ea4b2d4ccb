package decodertest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"siafu/internal/mapped"
)

// sink keeps what a decoder makes from being optimised away.
var sink []byte

// gluttons are decoders that allocate the size in a header: on the heap, in mapped memory, and
// beyond the available memory.
var gluttons = map[string]struct {
	decode func()
	says   string
}{
	"heap": {func() { sink = make([]byte, Constant+Constant/2) }, "bytes were allocated for 16 given"},
	"mapped": {func() {
		a := mapped.NewArena()
		defer a.Free()
		b := mapped.Make[uint8](a, 2*Constant)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}, "resident memory grew"},
	"address space": {func() { sink = make([]byte, 1<<40) }, "out of memory"},
}

const child = "SIAFU_TEST_GLUTTON"

// TestBounded: a glutton is caught, and a decoder that keeps to the bound is not.
func TestBounded(t *testing.T) {
	if name := os.Getenv(child); name != "" {
		Bounded(t, 16, gluttons[name].decode)
		return
	}
	Bounded(t, 16, func() { sink = make([]byte, Constant/2) })
	for name, g := range gluttons {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestBounded$")
			cmd.Env = append(os.Environ(), child+"="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), g.says) {
				t.Errorf("%v, want %q:\n%.400s", err, g.says, out)
			}
		})
	}
}

func TestLies(t *testing.T) {
	var got []string
	for lie := range Lies([]byte("a=1, b=20")) {
		got = append(got, string(lie))
	}
	want := []string{
		"a=2147483646, b=20", "a=1000000000000, b=20", "a=4611686018427387904, b=20",
		"a=1, b=2147483646", "a=1, b=1000000000000", "a=1, b=4611686018427387904",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	n := 0
	for lie := range BinaryLies(make([]byte, 12)) {
		if n++; len(lie) != 12 || slices.Max(lie) == 0 {
			t.Errorf("%x", lie)
		}
	}
	if n != 5 {
		t.Errorf("%d lies in 12 bytes, want 5", n)
	}
}

func BenchmarkBounded(b *testing.B) {
	for b.Loop() {
		Bounded(b, 16, func() {})
	}
}

func BenchmarkHeap(b *testing.B) {
	for b.Loop() {
		Heap(b, 16, func() {})
	}
}
