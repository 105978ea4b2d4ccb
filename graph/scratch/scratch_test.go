package scratch

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

const child = "SIAFU_TEST_SCRATCH_FINAL"

// As a child this program makes a folder, fills it, says so, and waits to be
// killed.
func TestMain(m *testing.M) {
	if final := os.Getenv(child); final != "" {
		f, err := Make(final)
		if err != nil || os.WriteFile(filepath.Join(f.Path, "part"), []byte("x"), 0o644) != nil {
			os.Exit(1)
		}
		os.Stdout.WriteString("there")
		select {}
	}
	os.Exit(m.Run())
}

// fill starts a process that fills a folder.
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

// What a living process fills stays, what a dead one has left goes, and other
// names are left alone.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	final := filepath.Join(dir, "4")
	for _, other := range []string{".14.tmp-1", ".4", "4.tmp-1", ".4.tmp-9.old"} {
		if err := os.Mkdir(filepath.Join(dir, other), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, dir)
	writer := fill(t, final)
	f, err := Make(final)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(names(t, dir)); n != len(before)+2 {
		t.Errorf("two folders are filled, and there are %q", names(t, dir))
	}
	f.Close()
	_ = writer.Process.Kill()
	_ = writer.Wait() // it was killed
	if n := len(names(t, dir)); n != len(before)+1 {
		t.Errorf("a killed process leaves its folder: %q", names(t, dir))
	}
	if f, err = Make(final); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if got := names(t, dir); !slices.Equal(got, before) {
		t.Errorf("left are %q, want %q", got, before)
	}
	if err := os.Mkdir(final, 0o755); err != nil {
		t.Fatal(err)
	}
	if f, err = Make(final); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(names(t, dir), ".4.tmp-9.old") {
		t.Error("an old folder stays beside its successor")
	}
	if err := os.Remove(final); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(f.Path, final); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if !slices.Contains(names(t, dir), "4") {
		t.Error("the finished folder is gone")
	}
}
