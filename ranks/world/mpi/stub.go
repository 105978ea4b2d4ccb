//go:build !mpi

package mpi

import (
	"time"

	"siafu/internal/fault"
	"siafu/ranks/world"
)

// Available reports whether this build has MPI.
func Available() bool { return false }

// Library returns "": this build has no MPI.
func Library() string { return "" }

// File returns "": this build has no MPI.
func File() string { return "" }

// Observe does nothing: this build has no MPI.
func Observe(time.Duration, func()) {}

// Forsake does nothing: this build has no MPI.
func Forsake(world.Comm) {}

// Forsaken returns false.
func Forsaken(world.Comm) bool { return false }

// Start fails with a Config fault: this build has no MPI.
func Start(world.Limits) (world.Comm, func(), error) {
	return nil, nil, fault.New(fault.Config, "mpi", "", "this build has no MPI").Then("rebuild with make build, or go build -tags mpi")
}
