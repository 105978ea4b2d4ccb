// Package hosttest makes programs that tests run in place of the real ones, and tells
// how long tests may take.
package hosttest

import (
	"os"
	"syscall"
	"testing"
)

// Program writes a file that can be run at once. No process is forked while the file
// is open: a child that had inherited it would make Linux refuse to run it
// ("text file busy") for as long as that child takes to become another program.
func Program(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
