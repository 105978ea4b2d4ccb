package graph

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
)

// Map reads no large file, so that it finds damage only in small files, in headers and in offsets.
// CheckRows finds the rest in the rows that it reads.
func TestMap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "five")
	if _, err := Write(dir, five(), false); err != nil {
		t.Fatal(err)
	}
	d, err := Map(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if d.Verified() || len(d.In.Cols) != int(d.Meta.Edges) || d.CheckRows(0, 5) != nil {
		t.Errorf("verified: %t, %d edges", d.Verified(), len(d.In.Cols))
	}
	d.Close()
	path := filepath.Join(dir, csrFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := func(change func(b []byte)) {
		b := append([]byte(nil), text...)
		change(b)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	last(func(b []byte) { b[len(b)-1] = 0xff }) // the last source of an edge out
	if _, err := Map(dir, 1<<20); fault.KindOf(err) != fault.Data {
		t.Errorf("a small damaged file: %v", err)
	}
	last(func(b []byte) { b[3*4096-4096+3] = 0xff }) // the first source of an edge in: the third page
	if d, err = Map(dir, 0); err != nil {
		t.Fatalf("a damaged file that is not read: %v", err)
	}
	if err := d.CheckRows(0, 5); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), csrFile) {
		t.Errorf("rows with a damaged id: %v", err)
	}
	d.Close()
	for name, change := range map[string]func(b []byte){
		"header":  func(b []byte) { b[20]++ },
		"offsets": func(b []byte) { b[4096+8] = 0xff },
	} {
		last(change)
		if _, err := Map(dir, 0); fault.KindOf(err) != fault.Data {
			t.Errorf("%s: %v", name, err)
		}
	}
}
