package mpi

import (
	"os"

	"siafu/ranks/world"
)

// transports is the environment variable with the transports of Open MPI.
const transports = "OMPI_MCA_btl"

// closePorts excludes the transports of Open MPI that listen on the network, if all ranks are on one
// host, unless the user has chosen transports. They listen on all addresses. Any process that can connect
// stops a rank with one byte, because the rank waits for the rest of a greeting.
//
// Open MPI 4 and 5 have both names. Shared memory has another name in each version, so that a list of
// the remaining transports would depend on the version.
func closePorts() {
	if l, ok := world.Launched(); ok && l.OneHost && os.Getenv(transports) == "" {
		os.Setenv(transports, "^tcp,ofi")
	}
}
