package disk_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"siafu/internal/disk"
	"siafu/internal/fault"
)

// A file without a name is written and read, and leaves nothing in its folder.
func TestUnnamedFile(t *testing.T) {
	dir, err := os.MkdirTemp("/var/tmp", "siafu-test-") // /tmp is often in memory
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f, err := disk.Create(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 || f.Size() != 1<<20 {
		t.Errorf("%d bytes, %v, %v", f.Size(), list, err)
	}
	for _, write := range []bool{true, false} {
		if rate, err := f.Rate(disk.Load{Piece: 64 << 10, Threads: 2, Write: write}); err != nil || rate <= 0 {
			t.Errorf("write=%t: %g bytes/s, %v", write, rate, err)
		}
	}
	for _, populate := range []bool{true, false} {
		if rate, ok, err := f.MappedRate(256<<10, populate, time.Second, nil); err != nil || ok && rate <= 0 {
			t.Errorf("populate=%t: %g bytes/s, %v", populate, rate, err)
		}
	}
}

// A file of any length is read to its end, and no access begins after a stop.
func TestRate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, size := range []int{1, 4096, 100_001} {
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := disk.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if rate, err := f.Rate(disk.Load{Piece: 8192, Threads: 3}); err != nil || rate <= 0 {
			t.Errorf("%d bytes: %g bytes/s, %v", size, rate, err)
		}
		if rate, err := f.Rate(disk.Load{Piece: 8192, Threads: 1, Stop: func() bool { return true }}); err != nil || rate != 0 {
			t.Errorf("stopped: %g bytes/s, %v", rate, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, open := range []func() (*disk.File, error){
		func() (*disk.File, error) { return disk.Open(path + "x") },
		func() (*disk.File, error) { return disk.Create(path+"x", 1) },
	} {
		if _, err := open(); fault.KindOf(err) != fault.Missing {
			t.Errorf("%v", err)
		}
	}
}
