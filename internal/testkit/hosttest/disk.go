package hosttest

import (
	"testing"

	"golang.org/x/sys/unix"
)

// SmallDisk mounts a file system of the given size, such as 64k, and returns its folder. It
// skips the test if mounting is not permitted.
func SmallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil { // a killed process may still be ending
			t.Error(err)
		}
	})
	return dir
}
