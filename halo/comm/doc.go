// Package comm declares the communicator interface of a halo exchange. Package halo uses it
// and package world implements it, so that transport and exchange are independent.
package comm
