package runfolder

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/internal/fault"
	"siafu/internal/inventory"
	"siafu/internal/scratch"
)

// tree returns every path below a folder with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			found[path] = "folder"
			return err
		}
		if to, err := os.Readlink(path); err == nil {
			found[path] = "link to " + to
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A claim is for what is not there, what is empty and what siafu has made. A
// claim that is refused, and one that is given up, changes nothing.
func TestClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		make    func(t *testing.T, dir string)
		refused fault.Kind // Runtime where it is not
		says    string
	}{
		"absent":           {make: func(t *testing.T, dir string) { os.Remove(dir) }},
		"absent, deep":     {make: func(t *testing.T, dir string) { os.Remove(dir); os.Remove(filepath.Dir(dir)) }},
		"empty":            {make: func(*testing.T, string) {}},
		"a claim of old":   {make: func(t *testing.T, dir string) { write(t, "", dir, "lock") }},
		"a run":            {make: func(t *testing.T, dir string) { fill(t, dir) }},
		"a run with notes": {make: func(t *testing.T, dir string) { fill(t, dir); write(t, "x", dir, "notes.txt") }},
		"a file in it":     {func(t *testing.T, dir string) { write(t, "x", dir, "notes.txt") }, fault.Usage, "notes.txt"},
		"only our names": {func(t *testing.T, dir string) {
			os.Mkdir(filepath.Join(dir, "checkpoints"), 0o755)
			write(t, "x", dir, "checkpoints", "resnet.pt")
		}, fault.Usage, "checkpoints"},
		"somebody's lock": {func(t *testing.T, dir string) { write(t, "my own", dir, "lock") }, fault.Usage, "lock"},
		"a link to a lock": {func(t *testing.T, dir string) {
			write(t, "", filepath.Dir(dir), "elsewhere")
			os.Symlink("../elsewhere", filepath.Join(dir, "lock"))
		}, fault.Usage, "lock"},
		"a run without a marker": {func(t *testing.T, dir string) { fill(t, dir); os.Remove(filepath.Join(dir, markerFile)) },
			fault.Usage, "older siafu"},
		"a marker that was changed": {func(t *testing.T, dir string) {
			fill(t, dir)
			text, _ := os.ReadFile(filepath.Join(dir, markerFile))
			write(t, strings.Replace(string(text), "run folder", "run  folder", 1), dir, markerFile)
		}, fault.Usage, "older siafu"},
		"a marker of something else": {func(t *testing.T, dir string) { write(t, "{}", dir, markerFile) }, fault.Usage, markerFile},
		"a file":                     {func(t *testing.T, dir string) { os.Remove(dir); write(t, "x", dir) }, fault.IO, "run"},
		"below a file": {func(t *testing.T, dir string) {
			os.Remove(dir)
			os.Remove(filepath.Dir(dir))
			write(t, "x", filepath.Dir(dir))
		}, fault.IO, "run"},
		"a link to nowhere": {func(t *testing.T, dir string) { os.Remove(dir); os.Symlink("nowhere", dir) }, fault.Missing, "run"},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir := filepath.Join(base, "a", "run")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			tc.make(t, dir)
			before := tree(t, base)
			f, err := Claim{Out: dir, Name: "x"}.Take()
			switch {
			case tc.says != "" && (fault.KindOf(err) != tc.refused || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("%v", err)
			case tc.says == "" && err != nil:
				t.Fatal(err)
			}
			if f != nil {
				io.WriteString(f.Log(), "kept until there is a log")
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(before, tree(t, base)); d != "" {
				t.Error(d)
			}
		})
	}
}

// half is the end of the name of a file that a killed process has left.
const half = ".half"

// leftBehind creates an unfinished file as a killed process leaves it, and returns its name.
func leftBehind(t *testing.T, dir, final string) string {
	t.Helper()
	f, err := scratch.Create(filepath.Join(dir, final), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	return filepath.Base(f.Name())
}

// A run writes no file through a symbolic link in its folder: it is not claimed, and remains as it is.
func TestLinks(t *testing.T) {
	for _, name := range []string{"metrics.jsonl", "log.txt", "events.out.tfevents.siafu", "checkpoints", "summary.json", "leaving.txt"} {
		t.Run(name, func(t *testing.T) {
			dir, elsewhere := filepath.Join(t.TempDir(), "run"), t.TempDir()
			fill(t, dir)
			write(t, "precious", elsewhere, "target")
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(elsewhere, "target"), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			others := inventory.Folder{{Name: inventory.Pattern("checkpoints"), In: inventory.Files("x")}}
			f, err := Claim{Out: dir, Others: others}.Take()
			if fault.KindOf(err) != fault.Usage || !strings.Contains(fmt.Sprint(err), name) {
				t.Errorf("%v", err)
				f.Close()
			}
			if name == "leaving.txt" {
				os.Remove(filepath.Join(dir, "summary.json")) // as if it were active
				if err := Leave(dir, []string{"host"}); fault.KindOf(err) != fault.Usage {
					t.Errorf("leave: %v", err)
				}
			}
			if text, err := os.ReadFile(filepath.Join(elsewhere, "target")); err != nil || string(text) != "precious" {
				t.Errorf("the target has %q: %v", text, err)
			}
		})
	}
}

// A run is replaced as long as all in its folder is siafu's, and then nothing
// of it is left.
func TestBeginReplaces(t *testing.T) {
	for name, tc := range map[string]struct {
		put  []string // paths below the folder
		says string
	}{
		"a run":                  {},
		"what is half written":   {put: []string{"summary.json" + half}},
		"an unlikely name":       {[]string{"summary.json.tmp-aaaaaaaaaaaaaaaa"}, "tmp-a"},
		"notes":                  {[]string{"notes.txt"}, "notes.txt"},
		"a name like ours":       {[]string{"config.toml.tmp-mine"}, "tmp-mine"},
		"a folder with our name": {[]string{"summary.json.tmp-aaaaaaaaaaaaaaaa/x"}, "tmp-a"},
		"checkpoints of nobody":  {[]string{"checkpoints/resnet.pt"}, "checkpoints"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			fill(t, dir)
			id := ReadMarker(dir).ID
			for _, path := range tc.put {
				os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755)
				if final, is := strings.CutSuffix(path, half); is {
					path = leftBehind(t, dir, final)
				}
				write(t, "precious", dir, path)
			}
			before := tree(t, dir)
			f, err := Claim{Out: dir, Launch: "first"}.Take()
			if err != nil {
				t.Fatal(err)
			}
			err = f.Replaceable()
			if tc.says != "" {
				if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%v", err)
				}
				f.Close()
				if d := cmp.Diff(before, tree(t, dir)); d != "" {
					t.Error(d)
				}
				return
			}
			if err == nil {
				err = f.Begin(map[string]string{"seed": "2"}, lines(t, "{}\n"))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"lock", "log.txt", "metrics.jsonl", "run.json"}, listing(t, dir)); d != "" {
				t.Error(d)
			}
			if m := ReadMarker(dir); m == nil || m.ID == id || m.Launch != "first" || m.Of["seed"] != "2" {
				t.Errorf("%+v", m)
			}
		})
	}
}

// If many claim one folder concurrently, at most one has it at any time, although others make and
// remove it repeatedly.
func TestClaimAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "run")
	var holding sync.Mutex
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				f, err := Claim{Out: dir}.Take()
				if err != nil {
					if fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "writing it") {
						t.Error(err)
					}
					continue
				}
				if !holding.TryLock() {
					t.Error("two have it")
					return
				}
				holding.Unlock()
				f.Close()
			}
		})
	}
	all.Wait()
}

// lines returns the lines of a file with a text.
func lines(t *testing.T, text string) Lines {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source.jsonl")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return Lines{Path: path, Bytes: int64(len(text))}
}
