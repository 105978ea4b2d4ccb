package durable

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Several processes that create the same folder concurrently all succeed, and the result is
// complete.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	for range 25 {
		final := filepath.Join(dir, "final")
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				f, err := NewFolder("test", final)
				if err != nil {
					t.Error(err)
					return
				}
				defer f.Close()
				if err := WriteFile("test", filepath.Join(f.Path, "file"), []byte("whole"), Perm); err != nil {
					t.Error(err)
				}
				if err := f.Commit(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if text, err := os.ReadFile(filepath.Join(final, "file")); string(text) != "whole" || os.RemoveAll(final) != nil {
			t.Fatalf("%q, %v", text, err)
		}
	}
}
