//go:build mpi

package mpi

import "unsafe"

// UseDevice allows buffers in the memory of a device. Before each MPI call, the C function call,
// int (*)(void *), is called with context to select the device for the thread. If call is nil,
// buffers must be in the host's memory, which is also the initial state. No MPI call on memory of
// the device may be pending.
func (c *comm) UseDevice(call, context unsafe.Pointer) {
	c.p.device = call != nil && knowsDevices()
	if !c.p.device {
		call, context = nil, nil
	}
	bindThreads(call, context)
}

// DeviceMemory implements Aware of package halo/comm. Buffers that are too long for one MPI call
// are excluded, because the processor would copy them.
func (c *comm) DeviceMemory(bytes int) bool { return c.p.device && bytes <= c.p.pieces.span }
