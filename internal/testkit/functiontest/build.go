// Package functiontest builds the function for tests.
package functiontest

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// Build builds the function's executable like "make function". Tests share it.
func Build(t testing.TB) string { return build(t, runtime.GOARCH) }

func build(t testing.TB, arch string) string {
	t.Helper()
	return hosttest.Build(t, "bootstrap-"+arch, func(root, path string) *exec.Cmd {
		return exec.Command("make", "--no-print-directory", "-C", root, "function", "LAMBDA_ARCH="+arch, "FUNCTION="+path,
			"TRIM=-trimpath -buildvcs=false")
	})
}

// BuildFor builds the executable for an architecture in a folder of the test. A build for another
// architecture than this machine's compiles the standard library, which takes most of a minute.
// Therefore, unless long tests are enabled, BuildFor only changes the architecture in the header of
// this machine's executable.
func BuildFor(t testing.TB, arch string) string {
	t.Helper()
	from := runtime.GOARCH
	if hosttest.Big() {
		from = arch
	}
	text, err := os.ReadFile(build(t, from))
	if err != nil {
		t.Fatal(err)
	}
	const machine = 18 // its offset in an ELF header
	binary.LittleEndian.PutUint16(text[machine:], uint16(map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]))
	path := filepath.Join(t.TempDir(), "bootstrap")
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
