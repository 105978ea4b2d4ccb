package checkpoint

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"siafu/internal/fault"
	"siafu/internal/scratch"
)

// Whatever is saved, damaged, pruned and rewound in whatever order, the newest
// whole checkpoint is found, the one just saved stays, and keep others do.
func TestPruneAndLatest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "checkpoint")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := model{dir: dir, whole: map[int]bool{}}
		t.Repeat(map[string]func(*rapid.T){
			"save":   m.save,
			"damage": m.damage,
			"prune":  m.prune,
			"rewind": m.rewind,
			"":       m.check,
		})
	})
}

// model is the expected content of a folder.
type model struct {
	dir   string
	epoch int          // of the run
	whole map[int]bool // by epoch, whether its checkpoint is
}

func (m *model) path(epoch int) string { return filepath.Join(m.dir, folderName(epoch)) }

func (m *model) save(t *rapid.T) {
	m.epoch += rapid.IntRange(1, 3).Draw(t, "epochs")
	if _, err := Save(m.dir, stateOf(m.epoch, 1), nil); err != nil {
		t.Fatal(err)
	}
	m.whole[m.epoch] = true
}

func (m *model) damage(t *rapid.T) {
	if len(m.whole) == 0 {
		t.Skip("nothing to damage")
	}
	epoch := rapid.SampledFrom(slices.Sorted(maps.Keys(m.whole))).Draw(t, "epoch")
	name := rapid.SampledFrom([]string{modelFile, optimizerFile, bestFile, stateFile, manifestFile}).Draw(t, "file")
	if err := os.Truncate(filepath.Join(m.path(epoch), name), 9); err != nil {
		t.Fatal(err)
	}
	m.whole[epoch] = false
}

func (m *model) prune(t *rapid.T) {
	if !m.whole[m.epoch] {
		t.Skip("it follows a save")
	}
	keep := rapid.IntRange(0, 3).Draw(t, "keep")
	if _, err := Prune(m.dir, keep, m.epoch); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, epoch := range slices.Backward(slices.Sorted(maps.Keys(m.whole))) {
		if keep > 0 && kept == keep {
			delete(m.whole, epoch)
		} else if m.whole[epoch] {
			kept++
		}
	}
}

// rewind continues from any checkpoint.
func (m *model) rewind(t *rapid.T) {
	m.epoch = 0
	for epoch, whole := range m.whole {
		if whole {
			m.epoch = max(m.epoch, epoch)
		}
	}
	m.epoch = rapid.IntRange(0, m.epoch).Draw(t, "from")
	if _, err := Rewind(m.dir, m.epoch); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(m.whole, func(epoch int, _ bool) bool { return epoch > m.epoch })
}

func (m *model) check(t *rapid.T) {
	newest, problems := -1, 0
	for _, epoch := range slices.Backward(slices.Sorted(maps.Keys(m.whole))) {
		if m.whole[epoch] {
			newest = epoch
			break
		}
		problems++
	}
	s, skipped, err := Latest(m.dir)
	if err != nil || len(skipped) != problems || (s == nil) != (newest < 0) {
		t.Fatalf("%v %v %v; want epoch %d, %d problems", s, skipped, err, newest, problems)
	}
	if s != nil && s.Epoch != newest {
		t.Fatalf("epoch %d; want %d", s.Epoch, newest)
	}
	entries, err := os.ReadDir(m.dir)
	if err != nil || len(entries) != len(m.whole) {
		t.Fatalf("%v %v; want %v", entries, err, m.whole)
	}
}

// An unfinished checkpoint is removed if and only if no process writes it.
func TestSweep(t *testing.T) {
	for _, behind := range []string{"", ".old"} {
		dir := t.TempDir()
		mustSave(t, dir, stateOf(1, 1))
		living, err := scratch.Make(filepath.Join(dir, folderName(2)))
		if err != nil {
			t.Fatal(err)
		}
		dead := leftBehind(t, filepath.Join(dir, folderName(3))) + behind
		if err := os.CopyFS(dead, os.DirFS(filepath.Join(dir, folderName(1)))); err != nil {
			t.Fatal(err)
		}
		if behind != "" { // what has stepped aside goes where the new one is there
			mustSave(t, dir, stateOf(3, 1))
		}
		if _, err := Prune(dir, 5, 3); err != nil {
			t.Fatal(err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || !slices.Equal(left, []string{living.Path}) {
			t.Errorf("%v %v; want %s", left, err, living.Path)
		}
		living.Close()
	}
}

// leftBehind returns the name of a hidden folder of an ended process.
func leftBehind(t *testing.T, final string) string {
	t.Helper()
	f, err := scratch.Make(final)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	return f.Path
}

// Prune removes only checkpoints and unfinished files, and no folder with foreign files.
func TestPruneLeavesOthers(t *testing.T) {
	dir := t.TempDir()
	others := []string{
		".epoch-000001", ".epoch-000001.tmp-1", ".epoch-000001.tmp-aaaaaaaaaaaaaaaa", "epoch-1", "epoch-00001x", "epoch--00001", "notes",
		"epoch-000001.tmp-aaaaaaaaaaaaaaaa", filepath.Base(leftBehind(t, filepath.Join(dir, "notes"))),
	}
	for _, name := range others {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	precious := []string{filepath.Join("epoch-000000", "notes.txt"), filepath.Join("notes", "notes.txt")}
	mustSave(t, dir, stateOf(0, 1))
	for _, name := range precious {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("precious"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for epoch := 1; epoch < 4; epoch++ {
		mustSave(t, dir, stateOf(epoch, 1))
		if _, err := Prune(dir, 1, epoch); err != nil {
			t.Fatal(err)
		}
	}
	want := append(slices.Clone(others), folderName(0), folderName(3))
	slices.Sort(want)
	if got := names(t, dir); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v; want %v", got, want)
	}
	for _, name := range precious {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != "precious" {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
}

// A foreign folder with the name of a checkpoint is neither replaced nor removed, and in that case
// nothing else is.
func TestForeignInTheWay(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a file in it":    func(path string) error { return os.WriteFile(filepath.Join(path, "notes.txt"), []byte("x"), 0o644) },
		"a folder in it":  func(path string) error { return os.Mkdir(filepath.Join(path, "best"), 0o755) },
		"a link in it":    func(path string) error { return os.Symlink("/etc/hosts", filepath.Join(path, stateFile+".tmp-1")) },
		"a file, no more": func(path string) error { os.RemoveAll(path); return os.WriteFile(path, []byte("x"), 0o644) },
		"a link, no more": func(path string) error { os.RemoveAll(path); return os.Symlink(t.TempDir(), path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for epoch := 1; epoch <= 3; epoch++ {
				mustSave(t, dir, stateOf(epoch, 1))
			}
			if err := put(filepath.Join(dir, folderName(2))); err != nil {
				t.Fatal(err)
			}
			_, err := Rewind(dir, 1)
			wantFault(t, err, fault.Usage, folderName(2), "move it away")
			_, err = Save(dir, stateOf(2, 1), nil)
			wantFault(t, err, fault.Usage, folderName(2), "move it away")
			if got := names(t, dir); len(got) != 3 {
				t.Errorf("left are %v", got)
			}
		})
	}
}
