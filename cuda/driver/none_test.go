//go:build !cuda || !cgo

package driver

import (
	"strings"
	"testing"

	"siafu/graph/fault"
)

// A build without CUDA says so, and how to make one that has it.
func TestNoCUDA(t *testing.T) {
	_, listed := List()
	_, opened := Open(0)
	for _, err := range []error{listed, opened} {
		if Built() || fault.ExitCode(err) != 78 || !strings.Contains(err.Error(), "make build CUDA=1") {
			t.Errorf("exit %d, %v", fault.ExitCode(err), err)
		}
	}
}
