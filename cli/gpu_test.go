package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/cuda/driver"
)

// TestNoGPU checks that a host without a GPU refuses a run that asks for one before anything
// is written, and that the doctor prints the reason. Graph work on GPUs with tensor work
// elsewhere is refused on every host.
func TestNoGPU(t *testing.T) {
	data := small(t)
	out := filepath.Join(t.TempDir(), "run")
	refuses := func(code int, says string, flags ...string) {
		t.Helper()
		r := siafu(append([]string{"train", data, "--epochs", "2", "--out", out}, flags...)...)
		if r.code != code || !strings.Contains(r.err, says) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%v: exit %d, %q", flags, r.code, r.err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v: a run folder is left", flags)
		}
	}
	refuses(64, "--graph=cuda with --tensor=cpu; set --tensor cuda: graph work on GPUs needs it", "--graph", "cuda")
	if _, err := driver.List(); err == nil {
		t.Skip("this host has a GPU")
	}
	const says = "NVIDIA driver"
	refuses(78, says, "--tensor", "cuda")
	refuses(78, says, "--tensor", "cuda", "--graph", "cuda", "--ranks", "3", "--parts", "4")
	refuses(78, says, "--tensor", "cuda", "--graph", "cpu")
	trained := filepath.Join(t.TempDir(), "trained")
	must(t, "train", data, "--epochs", "1", "--out", trained, "--quiet")
	for _, graph := range []string{"", "cpu", "cuda"} {
		if r := siafu("predict", trained, data, "--tensor", "cuda", "--graph", graph, "--out", out); r.code != 78 ||
			!strings.Contains(r.err, says) {
			t.Errorf("predict: exit %d, %q", r.code, r.err)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("predict has written something")
	}
	if r := siafu("bench", "cuda"); r.code != 78 || !strings.Contains(r.err, says) || strings.Contains(r.out, "GB/s") {
		t.Errorf("bench cuda: exit %d, %q, %q", r.code, r.out, r.err)
	}
	refuses(78, says, "--tensor", "cuda", "--tensor", "blas=cublas")
	refuses(64, "--tensor blas=own with --tensor=cpu", "--tensor", "blas=own")
	if r := siafu("doctor"); r.code != 0 || !strings.Contains(r.out, "\ntensor cuda=false: cuda: ") || !strings.Contains(r.out, says) {
		t.Errorf("doctor: exit %d, %q", r.code, r.out)
	}
}
