package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/cuda/driver"
)

// On a host without a GPU, or built without CUDA, a run that asks for one is refused
// before anything is written, and the doctor says why; so is graph work apart from
// tensor work, anywhere.
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
	refuses(64, "--graph=cpu with --tensor=cuda; leave --graph out", "--tensor", "cuda", "--graph", "cpu")
	refuses(64, "--graph=cuda with --tensor=cpu; graph work on GPUs needs --tensor cuda", "--graph", "cuda")
	if _, err := driver.List(); err == nil {
		t.Skip("this host has a GPU")
	}
	says := "make build CUDA=1"
	if driver.Built() {
		says = "NVIDIA driver"
	}
	refuses(78, says, "--tensor", "cuda")
	refuses(78, says, "--tensor", "cuda", "--graph", "cuda", "--ranks", "3", "--parts", "4")
	if r := siafu("bench", "cuda"); r.code != 78 || !strings.Contains(r.err, says) || strings.Contains(r.out, "GB/s") {
		t.Errorf("bench cuda: exit %d, %q, %q", r.code, r.out, r.err)
	}
	refuses(78, says, "--tensor", "cuda", "--cuda-blas", "cublas")
	refuses(64, "--cuda-blas=own with --tensor=cpu", "--cuda-blas", "own")
	if r := siafu("doctor"); r.code != 0 || !strings.Contains(r.out, "\ntensor cuda=false: cuda: ") || !strings.Contains(r.out, says) {
		t.Errorf("doctor: exit %d, %q", r.code, r.out)
	}
}
