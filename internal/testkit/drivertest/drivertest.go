// Package drivertest is the conformance suite of the bindings of the CUDA driver. It runs
// on a host without a GPU: the library of cuda/driver/testdata/fake.c stands in for the
// driver and writes its calls to a log. Memory of its device is the host's.
package drivertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Build compiles a C file into a shared library and returns its path.
func Build(t *testing.T, source string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here")
	}
	to := filepath.Join(t.TempDir(), "libfake.so")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", to, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return to
}

// StartLog makes the library log its calls until the test ends.
func StartLog(t *testing.T) {
	t.Helper()
	t.Setenv("FAKE_LOG", filepath.Join(t.TempDir(), "calls"))
}

// Log returns the calls since the last Log, a line each.
func Log(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(os.Getenv("FAKE_LOG"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(os.Getenv("FAKE_LOG"), 0); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
