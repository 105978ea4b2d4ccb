package inventory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/scratch"
)

// shelf is a kind of folder with files and folders in it.
var shelf = append(Files("book", "list.txt"), Entry{
	Name: Pattern(`box-\d+`), In: Files("sheet"),
	Proof: func(path string) bool { return filepath.Base(path) != "box-13" },
})

func fill(t *testing.T, dir string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		name := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Entries of the inventory, with matching path and kind, are siafu's, and are removed; if
// there is anything else, nothing is.
func TestClear(t *testing.T) {
	unfinished := func(final string) string {
		f, err := scratch.Create(filepath.Join(t.TempDir(), final), 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return filepath.Base(f.Name())
	}
	own := []string{"book", "list.txt", unfinished("list.txt"), "box-1/sheet", "box-22/sheet", "box-22/" + unfinished("sheet")}
	for _, foreign := range []string{
		"", "notes", "book2", "list.txt.tmp-", "list.txt.tmp-x", "list.txt.tmp-aaaaaaaaaaaaaaaa", "box-1/sheet.tmp-aaaaaaaaaaaaaaaa",
		"listxtxt", "box-1/notes", "box-1/sub/sheet", "box-13/sheet", "box-/sheet", "sheet", "box-7",
	} {
		t.Run(foreign, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir, own...)
			if foreign != "" {
				fill(t, dir, foreign)
			}
			found, err := shelf.Foreign(dir)
			if err != nil || (found == "") != (foreign == "") || !strings.HasPrefix(filepath.Join(dir, foreign), found) {
				t.Errorf("%q %v", found, err)
			}
			err = shelf.Clear("test", dir, "book")
			if foreign == "" {
				if left, _ := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "book" {
					t.Errorf("%v, left are %v", err, left)
				}
				return
			}
			if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), found) {
				t.Errorf("%v", err)
			}
			for _, path := range append(own, foreign) {
				if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, link := range []string{"book", "box-1"} {
		dir := t.TempDir()
		if err := os.Symlink(t.TempDir(), filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		if found, err := shelf.Foreign(dir); err != nil || filepath.Base(found) != link {
			t.Errorf("a link %s: %q %v", link, found, err)
		}
	}
	if err := shelf.Clear("test", filepath.Join(t.TempDir(), "none")); err != nil {
		t.Errorf("no folder: %v", err)
	}
}

func TestOverwrite(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "mine", "ours")
	if err := os.Symlink("ours", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fault.Kind{"none": fault.Runtime, "none/none": fault.Runtime, "ours": fault.Runtime,
		"mine": fault.Usage, "link": fault.Usage, ".": fault.Usage, "mine/x": fault.IO} {
		err := Overwrite("test", filepath.Join(dir, name), func([]byte) bool { return name != "mine" })
		if (err == nil) != (want == fault.Runtime) || fault.KindOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A marker is read back if and only if its bytes are unchanged and its kind is the requested
// one.
func FuzzMarker(f *testing.F) {
	m := NewMarker("shelf")
	m.Launch, m.Of = NewID(), map[string]string{"seed": "1", "model": "gcn"}
	f.Add(m.Encode())
	f.Add(NewMarker("shelf").Encode())
	f.Add(NewMarker("box").Encode())
	f.Add([]byte(`{"siafu":"shelf"}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "marker")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		m := ReadMarker(path, "shelf")
		if m != nil && (string(m.Encode()) != string(text) || m.Siafu != "shelf" || len(m.ID) != 32) {
			t.Errorf("%q is taken for %+v", text, m)
		}
	})
}

func TestMarker(t *testing.T) {
	a, b := NewMarker("shelf"), NewMarker("shelf")
	if a.ID == b.ID {
		t.Error("two markers have one id")
	}
	whole := a.Encode()
	read := func(text []byte) *Marker { return decodeMarker(text, "shelf") }
	if m := read(whole); m == nil || m.ID != a.ID {
		t.Errorf("%+v", m)
	}
	for i := range whole {
		for bit := range 8 {
			text := append([]byte(nil), whole...)
			text[i] ^= 1 << bit
			if read(text) != nil {
				t.Errorf("byte %d of %s", i, text)
			}
		}
		if read(whole[:i]) != nil {
			t.Errorf("%s", whole[:i])
		}
	}
	if decodeMarker(whole, "box") != nil {
		t.Error("a shelf is taken for a box")
	}
}
