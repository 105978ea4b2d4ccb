package hosttest

import "testing"

// Programs builds siafu with MPI, and a substitute whose training epochs only sleep.
func Programs(t testing.TB) (siafu, standin string) {
	t.Helper()
	return Go(t, "mpi/siafu", "siafu", "mpi"), Go(t, "standin", "siafu/slurm/testdata/standin", "mpi")
}
