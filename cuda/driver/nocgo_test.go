//go:build !cgo

package driver

import (
	"strings"
	"testing"

	"siafu/internal/fault"
)

// TestNoCgo checks that a build without cgo names the missing driver and the remedy.
func TestNoCgo(t *testing.T) {
	_, listed := List()
	_, opened := Open(0)
	for _, err := range []error{listed, opened} {
		if fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "NVIDIA driver") || !strings.Contains(err.Error(), "make build") {
			t.Errorf("exit %d, %v", fault.ExitCode(err), err)
		}
	}
}
