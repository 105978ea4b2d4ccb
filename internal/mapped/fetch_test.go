package mapped_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/mapped"
)

// Parts of a file are fetched. In a file that another process has truncated, Fetch fails, and an access
// that Catch sees fails, with a fault of kind IO that names the file and the first missing page.
func TestFetch(t *testing.T) {
	path, page := filepath.Join(t.TempDir(), "f"), os.Getpagesize()
	if err := os.WriteFile(path, make([]byte, 10*page-5), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := mapped.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := f.Bytes()
	for _, part := range [][]byte{b, b[1:2], b[page-1 : page+1], b[:0], nil} {
		if err := mapped.Fetch(part); err != nil {
			t.Error(err)
		}
	}
	if !mapped.IsFile(b[9*page:]) || mapped.IsFile(make([]byte, 10)) || mapped.IsFile(nil) {
		t.Error("IsFile")
	}
	if err := os.Truncate(path, int64(4*page)); err != nil {
		t.Fatal(err)
	}
	for _, fetch := range []func([]byte) error{mapped.Fetch, mapped.Touch} {
		if err := fetch(b[page : 4*page]); err != nil {
			t.Error(err)
		}
	}
	access := func() (err error) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer mapped.Catch(&err)
		copy(make([]byte, page), b[4*page:])
		return nil
	}
	for name, err := range map[string]error{"fetch": mapped.Fetch(b[page:]), "touch": mapped.Touch(b[page:]), "access": access()} {
		if fault.ExitCode(err) != 74 || !strings.Contains(err.Error(), path) ||
			!strings.Contains(err.Error(), fmt.Sprint("byte ", 4*page)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if f.Close() != nil || mapped.IsFile(b) {
		t.Error("the file is still registered")
	}
}

// Parts of the file of spilled arrays are fetched too. Errors name the folder.
func TestFetchSpilled(t *testing.T) {
	dir, a := t.TempDir(), mapped.NewArena()
	a.Spill(dir, "rows")
	x := mapped.Make[float32](a.For("rows"), 1<<18)
	if !mapped.IsFile(mapped.Bytes(x[1:])) {
		t.Error("no part of a file")
	}
	if err := mapped.Fetch(mapped.Bytes(x)); err != nil {
		t.Error(err)
	}
	x[0] = 1
	if err := a.WriteError(); err != nil {
		t.Error(err)
	}
	if a.Free(); mapped.IsFile(mapped.Bytes(x)) {
		t.Error("the array is still registered")
	}
	if err := a.WriteError(); err != nil {
		t.Error(err)
	}
}

// Released pages have the same content when they are used again. Parts without a whole page, and memory
// that is no file, stay as they are.
func TestRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	want := make([]byte, 3*os.Getpagesize())
	for i := range want {
		want[i] = byte(i % 251)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := mapped.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	own := slices.Clone(want)
	for _, part := range [][]byte{f.Bytes()[1 : len(want)-1], f.Bytes()[5:9], f.Bytes()[:0], nil, own} {
		mapped.Release(part)
	}
	if !bytes.Equal(f.Bytes(), want) || !bytes.Equal(own, want) {
		t.Error("the content changed")
	}
}
