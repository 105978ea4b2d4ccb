// Package hosts creates virtual hosts on this machine: network namespaces, each with its
// own address and a link of a chosen rate to a bridge. Ranks that mpirun starts
// in them communicate over TCP through links as slow as those of a cluster. All
// hosts share the processors and the memory.
//
// The package needs root, iproute2, and a kernel with network namespaces, virtual
// Ethernet pairs, bridges and the token bucket filter; a missing component is a
// fault of kind Missing. Latency is that of the kernel.
//
// A caller must call Close, also when interrupted; it removes the hosts. The next
// Open removes hosts that a killed process left behind: a process records its
// hosts in a folder that it holds (package scratch). Open does not touch
// namespaces without a record, whatever their names.
package hosts
