//go:build mpi

package mpi

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// With too few addresses a process ends with a sentence before Go's runtime can fail.
func TestFewAddresses(t *testing.T) {
	for limit, code := range map[string]int{"100000": 78, "1500000": 78, "unlimited": 0} {
		cmd := exec.Command("sh", "-c", `ulimit -v `+limit+`; exec "$0" -test.list=none`, os.Args[0])
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Errorf("ulimit -v %s: exit code %d, %v\n%s", limit, got, err, out)
		}
		if text := string(out); code != 0 && (!strings.Contains(text, "ulimit -v") || strings.Count(text, "\n") != 1) {
			t.Errorf("ulimit -v %s: %s", limit, text)
		}
	}
}
