package checkpoint

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"siafu/graph/fault"
	"siafu/ranks/owner"
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

// model is what a folder must hold.
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

// rewind goes on from the newest checkpoint, or from any older one.
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

// What is half written is removed when, and only when, nobody writes it.
func TestSweep(t *testing.T) {
	me := owner.Self()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	unawaited := exec.Command("true")
	if err := unawaited.Start(); err != nil {
		t.Fatal(err)
	}
	for p := owner.Of(unawaited.Process.Pid); p.Alive(); {
		time.Sleep(time.Millisecond)
	}
	defer func() { _ = unawaited.Wait() }()
	with := func(pid int, start int64, host string) owner.Process {
		return owner.Process{PID: pid, Start: start, Host: host}
	}
	for _, tc := range []struct {
		name  string
		owner owner.Process
		age   time.Duration
		stays bool
	}{
		{"this process", me, 0, true},
		{"another living one", owner.Of(os.Getppid()), 0, true},
		{"a living one, for days", owner.Of(os.Getppid()), 72 * time.Hour, true},
		{"a dead one", with(dead.Process.Pid, me.Start, me.Host), 0, false},
		{"a dead one that nobody waits for", owner.Of(unawaited.Process.Pid), 0, false},
		{"a dead one whose number is taken", with(os.Getppid(), owner.Of(os.Getppid()).Start-1, me.Host), 0, false},
		{"another host, lately", with(1, 1, "elsewhere-7.cluster"), time.Hour, true},
		{"another host, long ago", with(1, 1, "elsewhere-7.cluster"), 25 * time.Hour, false},
	} {
		for _, what := range []string{"new", "old"} {
			t.Run(tc.name+" "+what, func(t *testing.T) {
				dir := t.TempDir()
				mustSave(t, dir, stateOf(1, 1))
				hidden := filepath.Join(dir, hiddenName(2, what, tc.owner))
				if err := os.CopyFS(hidden, os.DirFS(filepath.Join(dir, folderName(1)))); err != nil {
					t.Fatal(err)
				}
				then := time.Now().Add(-tc.age)
				for _, path := range append(glob(t, hidden, "*"), hidden) {
					if err := os.Chtimes(path, then, then); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := Prune(dir, 1, 1); err != nil {
					t.Fatal(err)
				}
				if stays := len(glob(t, dir, ".*")) == 1; stays != tc.stays {
					t.Errorf("it stays: %t", stays)
				}
				wantLatest(t, dir, stateOf(1, 1))
			})
		}
	}
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Nothing but checkpoints and what is half written is ever removed, and no
// folder with something in it that is not of a checkpoint.
func TestPruneLeavesOthers(t *testing.T) {
	dir := t.TempDir()
	others := []string{
		".epoch-000001", ".epoch-000001.new-1-2", ".epoch-1.new-1-2-" + owner.Self().Host, "epoch-1", "epoch-00001x", "epoch--00001", "notes",
		".epoch-000001.new-+1-2-" + owner.Self().Host, "epoch-000001.new-1-2-" + owner.Self().Host,
	}
	for _, name := range others {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dead := fmt.Sprintf(".epoch-000000.new-999999999-1-%s", owner.Self().Host)
	precious := []string{filepath.Join("epoch-000000", "notes.txt"), filepath.Join(dead, "notes.txt")}
	mustSave(t, dir, stateOf(0, 1))
	if err := os.Mkdir(filepath.Join(dir, dead), 0o755); err != nil {
		t.Fatal(err)
	}
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
	want := append(slices.Clone(others), dead, folderName(0), folderName(3))
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

// What has the name of a checkpoint and is none is neither replaced nor
// removed, and then nothing else is.
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
