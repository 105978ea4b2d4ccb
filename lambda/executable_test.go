package lambda

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestExecutable checks where the function is found beside a program, and which path is
// returned if it is missing.
func TestExecutable(t *testing.T) {
	t.Parallel()
	for layout, path := range map[string]string{
		"checkout":  "build/lambda/bootstrap",
		"archive":   "lib/siafu/bootstrap",
		"installed": "../lib/siafu/bootstrap",
	} {
		bin := filepath.Join(t.TempDir(), "bin")
		want := filepath.Join(bin, path)
		if err := os.MkdirAll(filepath.Dir(want), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(want, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if got := executableIn(bin, runtime.GOARCH); got != want {
			t.Errorf("%s: %s, want %s", layout, got, want)
		}
		if got, want := executableIn(bin, "riscv64"), filepath.Join(bin, "build/lambda/riscv64/bootstrap"); got != want {
			t.Errorf("%s, another architecture: %s, want %s", layout, got, want)
		}
	}
	if got, err := Executable("mine", runtime.GOARCH); err != nil || filepath.Base(got) != "mine" || !filepath.IsAbs(got) {
		t.Errorf("a named one: %s, %v", got, err)
	}
}
