// Package hosttest provides programs, small disks and limits for tests.
package hosttest

import (
	"os"
	"syscall"
	"testing"
)

// Program writes an executable file that can be run immediately. No process is forked while the
// file is open: Linux does not run a file ("text file busy") that a forked child still has open
// for writing.
func Program(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
