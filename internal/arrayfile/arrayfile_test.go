package arrayfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/internal/arrayfile"
	"siafu/internal/fault"
	"siafu/internal/testkit/decodertest"
)

const kind = "siafu.test"

// written makes a file with arrays of several types and lengths.
func written(t testing.TB, path string) {
	t.Helper()
	w, err := arrayfile.Create(path, kind)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	block := []uint8("blocks")
	if err := errors.Join(
		arrayfile.Reserve[int64](w, "offsets", 3),
		arrayfile.Reserve[uint8](w, "blocks", 6),
		arrayfile.Put(w, "none", []float32{}),
		arrayfile.Begin[uint32](w, "streamed"),
		arrayfile.Append(w, []uint32{1, 2}),
		arrayfile.Append(w, []uint32{3}),
		arrayfile.Fill(w, "blocks", block[:4]),
		arrayfile.Fill(w, "offsets", []int64{0, 1 << 40, -1}),
		arrayfile.Fill(w, "blocks", block[4:]),
		arrayfile.Put(w, "text", []uint8("words")),
		w.Commit(),
	); err != nil {
		t.Fatal(err)
	}
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.bin")
	written(t, path)
	f, err := arrayfile.Open(path, kind)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	offsets, err1 := arrayfile.Get[int64](f, "offsets")
	none, err2 := arrayfile.Get[float32](f, "none")
	streamed, err3 := arrayfile.Get[uint32](f, "streamed")
	text, err4 := arrayfile.Get[uint8](f, "text")
	blocks, err5 := arrayfile.Get[uint8](f, "blocks")
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	if string(blocks) != "blocks" {
		t.Error("the array that was filled in two blocks differs")
	}
	if !slices.Equal(offsets, []int64{0, 1 << 40, -1}) || len(none) != 0 ||
		!slices.Equal(streamed, []uint32{1, 2, 3}) || string(text) != "words" {
		t.Errorf("%v %v %v %q", offsets, none, streamed, text)
	}
	if !f.Has("text") || f.Has("absent") {
		t.Error("Has is wrong")
	}
	for _, err := range []error{
		func() error { _, err := arrayfile.Get[int32](f, "streamed"); return err }(),
		func() error { _, err := arrayfile.Get[int32](f, "absent"); return err }(),
		func() error { _, err := arrayfile.Open(path, "siafu.other"); return err }(),
	} {
		if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), path) {
			t.Errorf("%v", err)
		}
	}
	if _, err := arrayfile.Open(path+".absent", kind); fault.KindOf(err) != fault.Missing {
		t.Errorf("%v", err)
	}
	if _, err := arrayfile.Open(filepath.Dir(path), kind); fault.KindOf(err) != fault.IO {
		t.Errorf("a folder: %v", err)
	}
}

// Any missing or flipped byte, padding included, is detected.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.bin")
	written(t, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	harmed := filepath.Join(dir, "b.bin")
	check := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(harmed, b, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := arrayfile.Open(harmed, kind)
		if err == nil {
			f.Close()
		}
		if fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), harmed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for at := 0; at < len(whole); at += 1 + at/600 {
		b := slices.Clone(whole)
		b[at] ^= 1 << (at % 8)
		check(fmt.Sprintf("flip at %d", at), b)
	}
	for n := 0; n < len(whole); n += 1 + n/40 {
		check(fmt.Sprintf("cut to %d", n), whole[:n])
	}
	check("longer", append(slices.Clone(whole), 0))
}

// A writer that is given up leaves nothing, and a file that exists stays whole
// until another one is committed.
func TestAbort(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.bin")
	written(t, path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := arrayfile.Create(path, kind)
	if err != nil {
		t.Fatal(err)
	}
	if err := arrayfile.Put(w, "half", []int64{1}); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	after, err := os.ReadFile(path)
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("the older file has changed: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v %v", entries, err)
	}
	if _, err := arrayfile.Create(filepath.Join(dir, "no", "such", "folder"), kind); fault.KindOf(err) != fault.Missing {
		t.Errorf("%v", err)
	}
}

// Any bytes are a file or a fault.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "a.bin")
	written(f, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:4096])
	f.Add([]byte("SIAFUARR"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "fuzzed")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		var file *arrayfile.File
		var err error
		decodertest.Heap(t, int64(len(b)), func() { file, err = arrayfile.Open(path, kind) })
		if err != nil {
			if fault.KindOf(err) != fault.Data {
				t.Fatalf("%v", err)
			}
			return
		}
		defer file.Close()
		for _, name := range []string{"offsets", "streamed", "text"} {
			if v, err := arrayfile.Get[uint32](file, name); err == nil && len(v) > len(b)/4 {
				t.Fatalf("%d elements out of %d bytes", len(v), len(b))
			}
		}
	})
}

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "degrees.bin")

	w, err := arrayfile.Create(path, "degrees")
	if err != nil {
		panic(err)
	}
	defer w.Abort()
	if err := errors.Join(arrayfile.Put(w, "in", []uint32{3, 1, 2}), w.Commit()); err != nil {
		panic(err)
	}
	f, err := arrayfile.Open(path, "degrees")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	in, err := arrayfile.Get[uint32](f, "in")
	fmt.Println(in, err)
	// Output: [3 1 2] <nil>
}
