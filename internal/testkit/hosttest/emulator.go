package hosttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// ARM64 builds a package for linux/arm64, without cgo, and returns the start of a command that runs
// it under QEMU. The program of a package of tests is its tests. It skips the test without QEMU.
func ARM64(t testing.TB, name, pkg string, isTest bool) []string {
	t.Helper()
	var emulator string
	for _, name := range []string{"qemu-aarch64", "qemu-aarch64-static"} {
		if path, err := exec.LookPath(name); err == nil {
			emulator = path
		}
	}
	if emulator == "" {
		t.Skip("qemu-aarch64 is missing; qemu-user has it")
	}
	program := Build(t, filepath.Join("arm64", name), func(root, path string) *exec.Cmd {
		args := []string{"build", "-buildvcs=false"}
		if isTest {
			args = []string{"test", "-c", "-vet=off"}
		}
		cmd := exec.Command("go", append(args, "-trimpath", "-ldflags=-s -w", "-o", path, pkg)...)
		cmd.Dir, cmd.Env = root, append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
		return cmd
	})
	return []string{emulator, program}
}
