package scratch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"
)

const child = "SIAFU_TEST_SCRATCH_FINAL"

// As a child this program makes a folder and a file, says so, and waits to be
// killed.
func TestMain(m *testing.M) {
	if final := os.Getenv(child); final != "" {
		f, err := Make(final)
		if err != nil || os.WriteFile(filepath.Join(f.Path, "part"), []byte("x"), 0o644) != nil {
			os.Exit(1)
		}
		file, err := Create(final, 0o666)
		if err != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("there")
		time.Sleep(time.Hour) // an empty select would end the process as a deadlock
		runtime.KeepAlive(f)  // and a collected file would give up its lock
		runtime.KeepAlive(file)
	}
	os.Exit(m.Run())
}

// fill starts a process that fills a folder and a file.
func fill(t *testing.T, final string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), child+"="+final)
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		t.Fatal("the process does not start")
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// Sweeping removes folders of dead processes. It keeps those of living ones, and similar names that
// this package has not made.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	final := filepath.Join(dir, "4")
	for _, other := range []string{
		".14.tmp-1", ".4", "4.tmp-1", ".4.tmp-9.old", ".4.tmp-backup", ".4.tmp-abcdefghijklmnop",
		newName(".5.tmp-"), newName("5.tmp-"), newName(".4.tmp-") + "x", newName(".4.tmp-") + ".old",
	} {
		if err := os.Mkdir(filepath.Join(dir, other), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, dir)
	writer := fill(t, final)
	makeBoth(t, final, func() {
		if n := len(names(t, dir)); n != len(before)+4 {
			t.Errorf("two folders and two files are filled, and there are %q", names(t, dir))
		}
	})
	_ = writer.Process.Kill()
	_ = writer.Wait() // it was killed
	if n := len(names(t, dir)); n != len(before)+2 {
		t.Errorf("a killed process leaves a folder and a file: %q", names(t, dir))
	}
	makeBoth(t, final, func() {})
	if got := names(t, dir); !slices.Equal(got, before) {
		t.Errorf("left are %q, want %q", got, before)
	}
}

// makeBoth makes a folder and a file, calls do, and removes both.
func makeBoth(t *testing.T, final string, do func()) {
	t.Helper()
	folder, err := Make(final)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	file, err := Create(final, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	do()
	if err := errors.Join(os.Remove(file.Name()), file.Close()); err != nil {
		t.Error(err)
	}
}

// A folder that has made room for another stays while it is the only one.
func TestSteppedAside(t *testing.T) {
	dir := t.TempDir()
	final := filepath.Join(dir, "4")
	old := filepath.Join(dir, newName(folderPrefix(final))+aside)
	if err := os.Mkdir(old, 0o755); err != nil {
		t.Fatal(err)
	}
	if removed := Sweep(final, nil); removed != nil {
		t.Errorf("removed %q, without which there is none", removed)
	}
	if err := os.Mkdir(final, 0o755); err != nil {
		t.Fatal(err)
	}
	if removed := Sweep(final, nil); !slices.Equal(removed, []string{old}) {
		t.Errorf("removed %q beside its successor, want %q", removed, old)
	}
}

// A folder of another host is removed if it has not changed for a day, because the lock of its
// process may be invisible here.
func TestOtherHost(t *testing.T) {
	final := filepath.Join(t.TempDir(), "4")
	number := make([]byte, hostBytes+chanceBytes)
	copy(number, thisHost())
	number[0]++
	prefix := folderPrefix(final)
	path := filepath.Join(filepath.Dir(final), prefix+letters.EncodeToString(append(number, checksum(prefix, number)...)))
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if removed := Sweep(final, nil); removed != nil {
		t.Errorf("removed %q, which has just been made", removed)
	}
	past := time.Now().Add(-abandoned - time.Minute)
	if err := os.Chtimes(path, past, past); err != nil {
		t.Fatal(err)
	}
	if removed := Sweep(final, nil); !slices.Equal(removed, []string{path}) {
		t.Errorf("removed %q, want %q", removed, path)
	}
}

// A folder belongs to a command that shares it until that has ended, even if its maker ends
// first.
func TestShare(t *testing.T) {
	final := filepath.Join(t.TempDir(), "session")
	f, err := Make(final)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	f.Share(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.lock.Close() // as the kernel does when the maker is killed
	if removed := Sweep(final, nil); removed != nil {
		t.Errorf("removed %q, which a command holds", removed)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if removed := Sweep(final, nil); !slices.Equal(removed, []string{f.Path}) {
		t.Errorf("removed %q, want %q", removed, f.Path)
	}
}

// If undo fails, the folder remains until the next attempt.
func TestUndo(t *testing.T) {
	final := filepath.Join(t.TempDir(), "session")
	left := filepath.Join(filepath.Dir(final), newName(folderPrefix(final)))
	if err := os.Mkdir(left, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, failure := range []error{errors.New("not yet"), nil} {
		var seen []string
		f, err := New(final, 0o700, func(path string) error { seen = append(seen, path); return failure })
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if _, err := os.Stat(left); !slices.Equal(seen, []string{left}) || (err == nil) != (failure != nil) {
			t.Errorf("undone %q with %v, then %v", seen, failure, err)
		}
	}
}

// Errors are about the name that the user knows.
func TestErrors(t *testing.T) {
	final := filepath.Join(t.TempDir(), "none", "4")
	_, folder := Make(final)
	_, file := Create(final, 0o666)
	for _, err := range []error{folder, file} {
		var pe *fs.PathError
		if !errors.As(err, &pe) || pe.Path != final || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v, want one about %s", err, final)
		}
	}
}
