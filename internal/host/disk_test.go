package host

import (
	"os"
	"path/filepath"
	"testing"
)

// Free space is that of an existing folder, and the written bytes never shrink.
func TestDisk(t *testing.T) {
	dir := t.TempDir()
	if free, err := FreeDisk(dir); err != nil || free <= 0 {
		t.Errorf("%d bytes, %v", free, err)
	}
	if _, err := FreeDisk(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a missing folder: %v", err)
	}
	_, before := DiskBytes()
	f, err := os.Create(filepath.Join(dir, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, after := DiskBytes(); after < before { // equal on a file system in memory
		t.Errorf("%d bytes written, then %d", before, after)
	}
}

func TestInMemory(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err == nil && !InMemory("/dev/shm") {
		t.Error("/dev/shm is on a disk")
	}
	if InMemory("/proc") || InMemory("/none") {
		t.Error("/proc or a missing folder is in memory")
	}
}
