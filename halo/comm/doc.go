// Package comm says what a halo exchange needs of a communicator. Package halo
// calls it and package world supplies it, so that neither transport nor exchange
// needs to know the other.
package comm
