package driver

import (
	"os/exec"
	"strings"
	"testing"
)

// The calls are declared as in NVIDIA's headers.
func TestHeader(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler here")
	}
	for source, includes := range map[string]string{
		"testdata/header.c":           "#include <cuda.h>\n",
		"testdata/libraries_header.c": "#include <cublas_v2.h>\n#include <cusparse.h>\n",
	} {
		t.Run(source, func(t *testing.T) {
			paths := []string{"-fsyntax-only", "-I/usr/local/cuda/include", "-I/usr/lib/cuda/include", "-I../../build/cuda/include"}
			probe := exec.Command(cc, append(paths, "-x", "c", "-")...)
			probe.Stdin = strings.NewReader(includes)
			if err := probe.Run(); err != nil {
				t.Skip("no such headers here: make deps-cu")
			}
			if out, err := exec.Command(cc, append(paths, source)...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
