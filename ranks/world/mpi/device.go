//go:build mpi

package mpi

import "unsafe"

// UseDevice lets MPI work on memory of a device: before each call the C function call,
// int (*)(void *), is called with context, which makes the device that of the thread.
// No call: MPI works on the host's memory alone, as at first. To be called while no
// call of MPI is under way that has the device's memory.
func (c *comm) UseDevice(call, context unsafe.Pointer) {
	c.p.device = call != nil && knowsDevices()
	if !c.p.device {
		call, context = nil, nil
	}
	bindThreads(call, context)
}

// DeviceMemory implements Aware of package halo/comm. What one call cannot span would be copied by the
// processor.
func (c *comm) DeviceMemory(bytes int) bool { return c.p.device && bytes <= c.p.pieces.span }
