package mapped_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/host"
	"siafu/internal/mapped"
)

// pattern returns n bytes, no two pages of which are equal.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>12) ^ byte(i>>20) ^ byte(i)
	}
	return b
}

// onDisk returns a mapped file on a disk, and its content.
func onDisk(t *testing.T, bytes int) (f *mapped.File, path string, content []byte) {
	dir, err := os.MkdirTemp("/var/tmp", "siafu-test-") // /tmp is often in memory
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path, content = filepath.Join(dir, "f"), pattern(bytes)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if f, err = mapped.OpenFile(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f, path, content
}

// Passes over a file read each block once a pass, without those that stay. Parts of any position and
// length have the content of the file, during their use, before and after.
func TestPool(t *testing.T) {
	const blocks, stay, part = 16, 5, 100_001
	f, _, want := onDisk(t, blocks*mapped.Block-12345)
	b, p := f.Bytes(), mapped.NewPool(stay*mapped.Block, 0)
	before, _ := host.DiskBytes()
	for pass := range 3 {
		for lo := 0; lo < len(b); lo += part {
			hi := min(lo+part, len(b))
			if err := p.Fetch(b[lo:hi], false); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b[lo:hi], want[lo:hi]) {
				t.Fatalf("pass %d: bytes %d to %d differ", pass, lo, hi)
			}
			p.Release(b[lo:hi])
		}
	}
	after, _ := host.DiskBytes()
	// The addresses of the mapping need not begin with a block.
	if got, want := float64(after-before)/mapped.Block, float64(blocks+2*(blocks-stay)); after > before && (got < want-2 || got > want+2) {
		t.Errorf("%g blocks are read, want %g", got, want)
	}
	if !bytes.Equal(b, want) {
		t.Error("the mapping of unused parts differs from the file")
	}
	if p.Close(); !bytes.Equal(b, want) {
		t.Error("the mapping differs from the file after the pool is closed")
	}
}

// Goroutines that fetch parts of the same blocks write disjoint values, which are read in later passes.
// Values that stay, that have been evicted, and that the mapping shows are the same.
func TestPoolWrites(t *testing.T) {
	for _, stay := range []int64{0, 3 * mapped.Block} {
		a := mapped.NewArena()
		a.Spill(t.TempDir(), "rows")
		b := mapped.Bytes(mapped.Make[float32](a.For("rows"), 14*mapped.Block/4))
		want := pattern(len(b))
		p := mapped.NewPool(0, stay)
		const part = 333_333
		for pass := range 3 {
			var wait sync.WaitGroup
			for worker := range 2 {
				wait.Go(func() {
					for lo := worker * part; lo < len(b); lo += 2 * part {
						hi := min(lo+part, len(b))
						if err := p.Fetch(b[lo:hi], pass == 0); err != nil {
							t.Error(err)
						}
						if pass == 0 {
							copy(b[lo:hi], want[lo:hi])
						} else if !bytes.Equal(b[lo:hi], want[lo:hi]) {
							t.Errorf("stay=%d pass %d: bytes %d to %d differ", stay, pass, lo, hi)
						}
						p.Release(b[lo:hi])
					}
				})
			}
			wait.Wait()
		}
		if !bytes.Equal(b, want) {
			t.Error("the mapping differs")
		}
		p.Close()
		a.Free()
	}
}

// A part that cannot be read directly is read through the page cache. If that fails too, the fault is that of
// Fetch. Blocks in memory remain.
func TestPoolWithoutDirectReads(t *testing.T) {
	f, path, want := onDisk(t, 3*mapped.Block)
	b, p := f.Bytes(), mapped.NewPool(0, 0)
	defer p.Close()
	page := os.Getpagesize()
	if err := p.Fetch(b[:page], false); err != nil {
		t.Fatal(err)
	}
	mapped.BreakDirect(b)
	if err := p.Fetch(b, false); err != nil || !bytes.Equal(b, want) {
		t.Errorf("through the page cache: %v", err)
	}
	end := 2*mapped.Block + page
	if err := os.Truncate(path, int64(end)); err != nil {
		t.Fatal(err)
	}
	if err := p.Fetch(b[:end], false); err != nil || !bytes.Equal(b[:end], want[:end]) {
		t.Errorf("before the end: %v", err)
	}
	err := p.Fetch(b[mapped.Block:], false)
	if fault.ExitCode(err) != 74 || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), fmt.Sprint("byte ", end)) {
		t.Errorf("%v", err)
	}
}
