package kernels_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// Tests of kernels, fused multiply-adds and elementary functions pass on ARM64 under emulation. The long
// variant omits those that take minutes there, which training covers, and this test.
func TestEmulatedARM64(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ folder, tests string }{
		{"../internal/elementary", "."},
		{"internal/avx", "."},
		{".", "^Test(MatMulTransA|Sparse.*|Softmax.*|Optimizer.*|Loss.*|NarrowRows|ColumnSums|Dropout.*|Units.*|Philox.*)$"},
	} {
		if hosttest.Big() {
			c.tests = "."
		}
		folder, err := filepath.Abs(c.folder)
		if err != nil {
			t.Fatal(err)
		}
		arm := hosttest.ARM64(t, filepath.Base(folder)+".test", folder, true)
		cmd := exec.Command(arm[0], arm[1], "-test.run", c.tests, "-test.timeout", "60m",
			"-test.skip", "Emulated|Attention|Ops|Lists|Listed|SpMM|Nothing|Allocat")
		cmd.Dir = folder
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s on ARM64: %v\n%s", c.folder, err, out)
		}
	}
}
