// Package hosts makes hosts of this machine: network namespaces, each with an
// address of its own and a link of a chosen rate to a bridge, so that ranks
// which mpirun starts in them talk over TCP through links that are as slow as
// those of a cluster. Processors and memory are shared by all of them.
//
// It needs root, iproute2, and a kernel with network namespaces, virtual
// Ethernet pairs, bridges and the token bucket filter; what is missing is a
// fault of kind Missing. Latency is that of the kernel: nothing is added to it.
//
// Close takes everything down again, and whoever makes hosts must call it,
// also when interrupted. Hosts that a killed process has left behind are taken
// down by the next Open: a process writes down which ones it makes, in a folder
// that it holds (package scratch), and what nobody has written down is not
// touched, whatever its name.
package hosts
