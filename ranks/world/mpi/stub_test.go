//go:build !mpi

package mpi

import (
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// A build without MPI says so, and how to get one with it.
func TestUnavailable(t *testing.T) {
	_, _, err := Start(world.Limits{})
	if Available() || fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "go build -tags mpi") {
		t.Errorf("available: %v; Start: %v", Available(), err)
	}
}
