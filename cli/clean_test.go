package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/scratch"
	"siafu/internal/testkit/hosttest"
)

// clean removes exactly the leftovers of killed commands.
func TestClean(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "deep", "data")
	if err := os.MkdirAll(filepath.Dir(data), 0o755); err != nil {
		t.Fatal(err)
	}
	left := func() []string {
		found, _ := filepath.Glob(filepath.Join(dir, "deep", ".data.tmp-*"))
		return found
	}
	cmd := exec.Command(hosttest.Go(t, "siafu", "siafu", ""), "generate", data, "--vertices", "1000000", "--edges",
		"5000000", "--features", "64")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	written := func() []string { // the folder is locked before the first file
		found, _ := filepath.Glob(filepath.Join(dir, "deep", ".data.tmp-*", "*"))
		return found
	}
	for deadline := time.Now().Add(hosttest.Patience); len(written()) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	_ = cmd.Process.Signal(syscall.SIGSTOP)                                   // so that it lives on
	file, err := scratch.Create(filepath.Join(left()[0], "graph.csr"), 0o600) // a new file, not locked yet
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if out := must(t, "clean", dir); out != "" || len(left()) != 1 {
		t.Errorf("it takes from a process that lives: %q", out)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	mine := filepath.Join(dir, ".mine.tmp-abcdefghijklmnop")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "clean", "--dry-run", dir); !strings.Contains(out,
		"left path="+filepath.Join(dir, "deep", ".data.tmp-")) || len(left()) != 1 {
		t.Errorf("a look: %q, and %q are there", out, left())
	}
	if out := must(t, "clean", dir); !strings.Contains(out, "removed path="+filepath.Join(dir, "deep", ".data.tmp-")) || len(left()) != 0 {
		t.Errorf("%q, and %q are left", out, left())
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error("somebody else's file is gone")
	}
	if r := siafu("clean", filepath.Join(dir, "none")); r.code != 66 {
		t.Errorf("%+v", r)
	}
}
