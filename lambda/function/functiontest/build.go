// Package functiontest builds the function for tests.
package functiontest

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Build makes the executable of the function, as "make function" does, in a folder of
// the test.
func Build(t testing.TB) string { return BuildFor(t, runtime.GOARCH) }

// BuildFor makes it for an architecture.
func BuildFor(t testing.TB, arch string) string {
	t.Helper()
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bootstrap")
	make := exec.Command("make", "--no-print-directory", "-C", strings.TrimSpace(string(root)), "function", "LAMBDA_ARCH="+arch, "FUNCTION="+path)
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("make function: %v\n%s", err, out)
	}
	return path
}
