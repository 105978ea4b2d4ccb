package importers

import (
	"archive/tar"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"siafu/internal/testkit/hosttest"
)

// childImport has, for a child process, the archive and the dataset to write.
const childImport = "SIAFU_TEST_IMPORT"

func TestMain(m *testing.M) {
	if src, dst, child := strings.Cut(os.Getenv(childImport), ":"); child {
		_, _ = Import("raw", Options{Src: src, Dst: dst})
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// unpacking starts an import to dst that has unpacked a file and waits for the
// rest of its archive.
func unpacking(t *testing.T, dst string) *exec.Cmd {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "x.tar.zst")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childImport+"="+fifo+":"+dst)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	z, err := zstd.NewWriter(f)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	tarEntry(w, "labels.bin", 16, strings.NewReader(strings.Repeat("x", 16)))
	if w.Flush() != nil || z.Flush() != nil {
		t.Fatal("the archive cannot be written")
	}
	return cmd
}

// temporary returns the folders with unpacked archives.
func temporary(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(escapeGlob(dir), ".siafu-unpack*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestKilled: unpacked files stay while their import runs. After it was killed, the next
// import to the same destination removes them, for any format and name.
func TestKilled(t *testing.T) {
	for _, below := range []string{"", "new"} {
		t.Run("into "+below, func(t *testing.T) {
			parent := t.TempDir()
			next := func(name string) {
				t.Helper()
				dir := filepath.Join(parent, below)
				if _, err := Import("snap", Options{Src: files(t, tinySnap()), Dst: filepath.Join(dir, name)}); err != nil {
					t.Fatal(err)
				}
			}
			cmd := unpacking(t, filepath.Join(parent, below, "killed"))
			file := filepath.Join(escapeGlob(parent), ".siafu-unpack*", "labels.bin")
			for deadline := time.Now().Add(hosttest.Patience); ; time.Sleep(time.Millisecond) {
				if found, err := filepath.Glob(file); err != nil || len(found) > 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("nothing is unpacked")
				}
			}
			before := temporary(t, parent)
			next("first")
			if got := temporary(t, parent); !slices.Equal(got, before) {
				t.Errorf("left are %q while somebody unpacks, want %q", got, before)
			}
			if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // it was killed
			if got := temporary(t, parent); !slices.Equal(got, before) {
				t.Errorf("the killed import has left %q, want %q", got, before)
			}
			next("second")
			if got := temporary(t, parent); len(got) > 0 {
				t.Errorf("left are %q", got)
			}
		})
	}
}
