// Package launchtest builds the programs that tests of launchers run.
package launchtest

import (
	"testing"

	"siafu/internal/host/hosttest"
)

// Programs are siafu, and a stand-in for its training whose epochs are naps.
func Programs(t testing.TB) (siafu, standin string) {
	t.Helper()
	return hosttest.Go(t, "siafu-mpi", "siafu", "mpi"), hosttest.Go(t, "standin", "siafu/slurm/testdata/standin", "mpi")
}
