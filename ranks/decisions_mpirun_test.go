//go:build mpi

package ranks

import (
	"bytes"
	"path/filepath"
	"testing"

	"siafu/internal/testkit/mpitest"
	"siafu/kernels"
)

// The ranks of processors with different instructions agree on those that all have, and leave the bytes
// of the model that equal ranks leave.
func TestRanksAgreeOnKernels(t *testing.T) {
	siafu, data := program(t), generated(t, true)
	var first []byte
	for _, cpu := range []string{"", "avx2", "go"} {
		out := filepath.Join(t.TempDir(), "run")
		args := []string{"train", data, "--epochs", "8", "--quiet", "--out", out}
		older := `[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" != 2 ] || export ` + kernels.CPUVariable + `=` + cpu + `; exec "$@"`
		cmd := mpitest.Mpirun(t, 3, "/bin/sh", append([]string{"-c", older, "sh", siafu}, args...)...)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		r, want := readRun(t, out), cpu
		if cpu == "" || kernels.Best() == "go" {
			want = kernels.Best()
		}
		if r.Summary.Kernel != want {
			t.Errorf("with a rank of %q the kernels are %q", cpu, r.Summary.Kernel)
		}
		if first == nil {
			first = r.model
		}
		if !bytes.Equal(r.model, first) {
			t.Errorf("with a rank of %q the model has other bytes", cpu)
		}
	}
}
