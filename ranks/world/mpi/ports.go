package mpi

import (
	"os"
	"strings"

	"siafu/ranks/world"
)

// transports is the environment variable with the transports of Open MPI, and ucx that of UCX, on which
// Debian's MPICH is built.
const (
	transports = "OMPI_MCA_btl"
	ucx        = "UCX_TLS"
)

// closePorts excludes the transports that listen on the network, if all ranks are on one
// host, unless the user has chosen transports. They listen on all addresses. Any process that can connect
// stops a rank with one byte, because the rank waits for the rest of a greeting.
//
// Open MPI 4 and 5 have both names. Shared memory has another name in each version, so that a list of
// the remaining transports would depend on the version.
func closePorts() {
	l, ok := world.Launched()
	if !ok || !l.OneHost {
		return
	}
	for name, rest := range map[string]string{transports: "^tcp,ofi", ucx: "self,sm"} {
		if os.Getenv(name) == "" && (name == transports) == strings.HasPrefix(Library(), "Open MPI") {
			os.Setenv(name, rest)
		}
	}
}
