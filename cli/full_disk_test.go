package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"siafu/internal/testkit/hosttest"
)

// A full disk ends any command with exit code 74 and the path, and leaves no incomplete file
// that looks complete.
func TestFullDisk(t *testing.T) {
	generateArgs := []string{"--vertices", "3000", "--edges", "30000", "--features", "16", "--classes", "3"}
	fails := func(t *testing.T, disk string, args ...string) {
		t.Helper()
		r := siafu(args...)
		if r.code != 74 || !strings.Contains(r.err, disk) || !strings.Contains(r.err, "no space") {
			t.Errorf("siafu %s: exit %d, %q", strings.Join(args, " "), r.code, r.err)
		}
	}
	t.Run("dataset", func(t *testing.T) {
		disk := hosttest.SmallDisk(t, "128k")
		fails(t, disk, append([]string{"generate", filepath.Join(disk, "data")}, generateArgs...)...)
		empty(t, disk)
	})
	t.Run("shards", func(t *testing.T) {
		disk := hosttest.SmallDisk(t, "700k")
		data := filepath.Join(disk, "data")
		must(t, append([]string{"generate", data}, generateArgs...)...)
		fails(t, disk, "partition", data, "--parts", "2")
		empty(t, filepath.Join(data, "parts"))
		must(t, "info", data)
	})
	t.Run("run folder", func(t *testing.T) {
		disk, data := hosttest.SmallDisk(t, "64k"), small(t)
		fails(t, disk, "train", data, "--ranks", "2", "--epochs", "400", "--out", filepath.Join(disk, "run"))
		if r := siafu("report", filepath.Join(disk, "run")); r.code != 0 || !strings.Contains(r.out, "unfinished") {
			t.Errorf("the run looks finished: exit %d %s", r.code, r.out)
		}
	})
	t.Run("timeline", func(t *testing.T) {
		disk, data, run := hosttest.SmallDisk(t, "16k"), small(t), filepath.Join(t.TempDir(), "run")
		fails(t, disk, "train", data, "--ranks", "2", "--epochs", "20", "--out", run, "--trace", filepath.Join(disk, "trace.json"))
		empty(t, disk)
		must(t, "report", run) // what was trained is whole
	})
	t.Run("predictions", func(t *testing.T) {
		disk, data, run := hosttest.SmallDisk(t, "16k"), small(t), filepath.Join(t.TempDir(), "run")
		must(t, "train", data, "--epochs", "1", "--out", run)
		fails(t, disk, "predict", run, data, "--embeddings", "--out", filepath.Join(disk, "p"))
		empty(t, filepath.Join(disk, "p"))
	})
}

// empty fails if anything is in a folder, which may be absent.
func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("left behind: %s", filepath.Join(dir, e.Name()))
	}
}

// A read-only dataset can be used for training and prediction: its shards are in the run
// folder, or in --parts-dir.
func TestReadOnlyDataset(t *testing.T) {
	disk := hosttest.SmallDisk(t, "4m")
	data, run, parts := filepath.Join(disk, "data"), filepath.Join(t.TempDir(), "run"), t.TempDir()
	must(t, "generate", data, "--vertices", "300", "--edges", "1000", "--features", "6", "--classes", "3")
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("a file system cannot be made read-only here: %v", err)
	}
	train := []string{"train", data, "--ranks", "2", "--servers", "0", "--epochs", "3", "--quiet", "--out", run}
	must(t, train...)
	must(t, append(train, "--force")...)
	must(t, "predict", run, data, "--ranks", "2")
	must(t, "predict", run, data, "--ranks", "3", "--parts-dir", parts)
	for _, path := range []string{filepath.Join(run, "parts", "2", "1.part"), filepath.Join(parts, "3", "2.part")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if r := siafu(append(train, "--force", "--parts-dir", filepath.Join(disk, "parts"))...); r.code != 74 ||
		!strings.Contains(r.err, "read-only") {
		t.Errorf("where it was told to write it cannot: %+v", r)
	}
}
