package mapped_test

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Arrays are zeroed, aligned and disjoint, with many goroutines at once. A freed arena can be
// used again.
func TestArena(t *testing.T) {
	a := mapped.NewArena()
	for range 2 {
		var wg sync.WaitGroup
		arrays := make([][]uint32, 200)
		for i := range arrays {
			wg.Go(func() {
				arrays[i] = mapped.Make[uint32](a, i*i*7)
				for j, x := range arrays[i] {
					if x != 0 {
						t.Errorf("array %d is not zeroed", i)
						return
					}
					arrays[i][j] = uint32(i)
				}
			})
		}
		wg.Wait()
		for i, v := range arrays {
			if len(v) > 0 && uintptr(unsafe.Pointer(&v[0]))%64 != 0 {
				t.Errorf("array %d is not aligned", i)
			}
			for _, x := range v {
				if x != uint32(i) {
					t.Fatalf("array %d is overwritten by array %d", i, x)
				}
			}
		}
		if a.Bytes() < 4*7*200*200*199/3 {
			t.Errorf("the arena says %d bytes", a.Bytes())
		}
		a.Free()
		a.Free()
		if a.Bytes() != 0 {
			t.Errorf("%d bytes after Free", a.Bytes())
		}
	}
}

func TestPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"negative":  func() { mapped.Make[int64](mapped.NewArena(), -1) },
		"overflow":  func() { mapped.Make[int64](mapped.NewArena(), 1<<62) },
		"too much":  func() { mapped.Make[int64](mapped.NewArena(), 1<<58) },
		"odd bytes": func() { mapped.Cast[uint32](make([]byte, 7)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, mapped.Bytes([]int32{1, -2}), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := mapped.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if v := mapped.Cast[int32](f.Bytes()); len(v) != 2 || v[1] != -2 {
		t.Errorf("%v", v)
	}
	for range 2 {
		if f.Close() != nil || len(f.Bytes()) != 0 {
			t.Error("Close")
		}
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if f, err := mapped.OpenFile(path); err != nil || len(f.Bytes()) != 0 || f.Close() != nil {
		t.Errorf("an empty file: %v", err)
	}
	if _, err := mapped.OpenFile(path + "x"); fault.KindOf(err) != fault.Missing {
		t.Errorf("%v", err)
	}
	if _, err := mapped.OpenFile(dir); fault.KindOf(err) != fault.IO {
		t.Errorf("%v", err)
	}
}

// Forgotten pages of a file have the same content when they are read again. Other memory keeps its
// content, too: Forget must not touch pages that it would clear.
func TestForget(t *testing.T) {
	const bytes = 5 << 14
	path := filepath.Join(t.TempDir(), "f")
	want := make([]byte, bytes)
	for i := range want {
		want[i] = byte(i / 7)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := mapped.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a := mapped.NewArena()
	defer a.Free()
	other := mapped.MakeApart(a, bytes)
	copy(other, want)
	for _, part := range [][]byte{f.Bytes(), f.Bytes()[1 : bytes-1], f.Bytes()[:100], nil, other, other[4096:8192]} {
		f.Forget(part)
		if !slices.Equal(f.Bytes(), want) || !slices.Equal(other, want) {
			t.Fatal("the content has changed")
		}
	}
}

// A temporary arena of a sketch is a sketch.
func TestTemporary(t *testing.T) {
	for name, a := range map[string]*mapped.Arena{"arena": mapped.NewArena(), "sketch": mapped.NewSketch()} {
		filled := false
		if a.Temporary().Fill(func() { filled = true }); filled != (name == "arena") {
			t.Errorf("%s: filled %t", name, filled)
		}
	}
}

// An array that the system does not give is an error with its size, and other
// panics stay what they are.
func TestExhausted(t *testing.T) {
	a := mapped.NewArena()
	defer a.Free()
	mapped.Make[byte](a, 3<<20)
	take := func(n int) (err error) {
		defer mapped.Catch(&err)
		mapped.Make[int64](a, n)
		return nil
	}
	err := take(1 << 58)
	if fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "3.1 MB in use") || !strings.Contains(err.Error(), "siafu plan") {
		t.Errorf("%v", err)
	}
	if err := take(10); err != nil {
		t.Errorf("the arena is of no use any more: %v", err)
	}
	defer func() {
		if r := recover(); r != "mapped: negative length" {
			t.Errorf("%v", r)
		}
	}()
	t.Errorf("%v", take(-1))
}

// Other failures are errors if caught, and descriptive panics if not.
func TestFail(t *testing.T) {
	cause := fault.New(fault.Runtime, "cuda", "", "an illegal address")
	work := func() (err error) {
		defer mapped.Catch(&err)
		mapped.Fail(cause)
		return nil
	}
	if err := work(); err != cause {
		t.Errorf("%v", err)
	}
	defer func() {
		if err, ok := recover().(error); !ok || err.Error() != cause.Error() {
			t.Errorf("%v", err)
		}
	}()
	mapped.Fail(cause)
}

// A sketch counts arrays like an arena, beyond the available memory, without using any.
func TestSketch(t *testing.T) {
	a := mapped.NewSketch()
	defer a.Free()
	x := mapped.Make[float32](a, 1<<43)
	if len(x) != 1<<43 || a.Used() != 1<<45 || a.Bytes() != 0 {
		t.Errorf("%d floats, %d bytes, %d of them mapped", len(x), a.Used(), a.Bytes())
	}
	a.Fill(func() { t.Error("a sketch is filled") })
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	for name, touch := range map[string]func(){
		"read":  func() { t.Log(x[1<<42]) },
		"write": func() { x[0] = 1 },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no fault", name)
				}
			}()
			touch()
		}()
	}
}

// Arrays are counted by purpose, in whichever order they are made.
func TestShares(t *testing.T) {
	for name, a := range map[string]*mapped.Arena{"arena": mapped.NewArena(), "sketch": mapped.NewSketch()} {
		rows := a.For("rows")
		mapped.Make[byte](rows, 64)
		mapped.Make[byte](a, 1)
		mapped.Make[byte](rows.For("sums"), 65)
		mapped.Make[byte](a.For("rows"), 2)
		filled := false
		rows.Fill(func() { filled = true })
		want := []mapped.Share{{"rows", 128}, {"", 64}, {"sums", 128}}
		if got := a.Shares(); !slices.Equal(got, want) || a.Used() != 320 || filled != (name == "arena") {
			t.Errorf("%s: %v, %d bytes, filled %t", name, got, a.Used(), filled)
		}
		if rows.Free(); a.Used() != 0 || len(a.Shares()) != 0 {
			t.Errorf("%s: %d bytes after Free", name, a.Used())
		}
	}
}
