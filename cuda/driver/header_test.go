package driver

import (
	"os/exec"
	"strings"
	"testing"
)

// The calls are declared as in NVIDIA's cuda.h.
func TestHeader(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here")
	}
	paths := []string{"-fsyntax-only", "-I/usr/local/cuda/include", "-I/usr/lib/cuda/include"}
	probe := exec.Command(cc, append(paths, "-x", "c", "-")...)
	probe.Stdin = strings.NewReader("#include <cuda.h>\nCUcontext c;\n")
	if err := probe.Run(); err != nil {
		t.Skip("no cuda.h here: Debian's nvidia-cuda-dev has one, which CPATH may lead to")
	}
	if out, err := exec.Command(cc, append(paths, "testdata/header.c")...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
