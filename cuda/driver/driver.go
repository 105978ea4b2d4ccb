//go:build cgo

package driver

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"siafu/cuda/device"
)

// opened is a GPU. It implements device.Device, device.Libraries and device.Threaded.
//
// Design note: the context is the process's primary one, not one per opened device. Ranks of a
// process that share a GPU then run concurrently, and the driver's memory for a context is
// used once. A device's resources are therefore recorded, for Close.
type opened struct {
	*library
	handle     C.CUdevice
	context    C.CUcontext
	properties device.Properties
	resources  device.Resources
}

var _ device.Threaded = (*opened)(nil)

// open makes a context on GPU n.
func (l *library) open(n int) (*opened, error) {
	handle, g, err := l.find(n)
	if err != nil {
		return nil, err
	}
	d := &opened{library: l, handle: handle}
	if d.properties, err = l.describe(handle, g); err != nil {
		return nil, err
	}
	if err := Supported(n, d.properties); err != nil {
		return nil, err
	}
	if err := l.check("cuDevicePrimaryCtxRetain", C.siafu_retain(l.calls, &d.context, handle)); err != nil {
		return nil, err
	}
	return d, nil
}

// describe queries all properties.
func (l *library) describe(handle C.CUdevice, g GPU) (p device.Properties, err error) {
	p.Name, p.Driver = g.Name, g.Driver
	for _, a := range []struct {
		to    *int
		which C.int
	}{
		{&p.Major, C.SIAFU_COMPUTE_CAPABILITY_MAJOR}, {&p.Minor, C.SIAFU_COMPUTE_CAPABILITY_MINOR},
		{&p.Multiprocessors, C.SIAFU_MULTIPROCESSOR_COUNT}, {&p.WarpSize, C.SIAFU_WARP_SIZE},
		{&p.MemoryClock, C.SIAFU_MEMORY_CLOCK_RATE}, {&p.MemoryBus, C.SIAFU_GLOBAL_MEMORY_BUS_WIDTH},
		{&p.ThreadsPerBlock, C.SIAFU_MAX_THREADS_PER_BLOCK}, {&p.SharedPerBlock, C.SIAFU_MAX_SHARED_MEMORY_PER_BLOCK},
		{&p.Block[0], C.SIAFU_MAX_BLOCK_DIM_X}, {&p.Block[1], C.SIAFU_MAX_BLOCK_DIM_X + 1}, {&p.Block[2], C.SIAFU_MAX_BLOCK_DIM_X + 2},
		{&p.Grid[0], C.SIAFU_MAX_GRID_DIM_X}, {&p.Grid[1], C.SIAFU_MAX_GRID_DIM_X + 1}, {&p.Grid[2], C.SIAFU_MAX_GRID_DIM_X + 2},
	} {
		var value C.int
		if err := l.check("cuDeviceGetAttribute", C.siafu_attribute(l.calls, &value, a.which, handle)); err != nil {
			return p, err
		}
		*a.to = int(value)
	}
	return p, nil
}

func (d *opened) Thread() (call, context unsafe.Pointer) {
	return unsafe.Pointer(d.calls.cuCtxSetCurrent), unsafe.Pointer(d.context)
}

func (d *opened) Properties() device.Properties { return d.properties }

func (d *opened) Memory() (free, total int64, err error) {
	var f, t C.size_t
	err = d.check("cuMemGetInfo", C.siafu_memory(d.calls, d.context, &f, &t))
	return int64(f), int64(t), err
}

func (d *opened) Alloc(bytes int) (p device.Ptr, err error) {
	if bytes < 0 {
		return 0, fmt.Errorf("cuda: %d bytes: %w", bytes, device.ErrMemory)
	}
	var at C.CUdeviceptr
	err = d.resources.Add(func() (any, error) {
		code := C.siafu_alloc(d.calls, d.context, &at, C.size_t(max(bytes, 1))) // the driver refuses 0 bytes
		if err := d.check("cuMemAlloc", code); err != nil {
			return nil, fmt.Errorf("%d bytes: %w", bytes, err)
		}
		return device.Ptr(at), nil
	}, func() error { return d.check("cuMemFree", C.siafu_free(d.calls, d.context, at)) })
	return device.Ptr(at), err
}

func (d *opened) Free(p device.Ptr) error {
	if err := d.Synchronize(); err != nil {
		return err
	}
	return d.resources.End(p)
}

func (d *opened) Pin(b []byte) error {
	at := unsafe.Pointer(unsafe.SliceData(b))
	_, err := device.Create(&d.resources, pinned(uintptr(at)),
		func() error {
			return d.check("cuMemHostRegister", C.siafu_pin(d.calls, d.context, at, C.size_t(len(b))))
		},
		func() error { return d.check("cuMemHostUnregister", C.siafu_unpin(d.calls, d.context, at)) })
	return err
}

// pinned is the address of host memory, as a key of resources.
type pinned uintptr

func (d *opened) Unpin(b []byte) error {
	return d.resources.End(pinned(uintptr(unsafe.Pointer(unsafe.SliceData(b)))))
}

func (d *opened) Synchronize() error {
	return d.check("cuCtxSynchronize", C.siafu_synchronize(d.calls, d.context))
}

func (d *opened) Close() error {
	return d.resources.Close(d.Synchronize, func() error {
		return d.check("cuDevicePrimaryCtxRelease", C.siafu_release(d.calls, d.handle))
	})
}

// logBytes bounds the stored log of the PTX compiler.
const logBytes = 4096

func (d *opened) Load(name, text string) (device.Module, error) {
	m := &module{device: d, name: name}
	source, log := C.CString(text), (*C.char)(C.calloc(1, logBytes))
	defer C.free(unsafe.Pointer(source))
	defer C.free(unsafe.Pointer(log))
	return device.Create[device.Module](&d.resources, m, func() error {
		code := C.siafu_load(d.calls, d.context, &m.handle, source, log, logBytes)
		if err := d.check("cuModuleLoadDataEx", code); err != nil {
			return fmt.Errorf("%s: %w: %s", name, err, C.GoString(log))
		}
		return nil
	}, func() error { return d.check("cuModuleUnload", C.siafu_unload(d.calls, d.context, m.handle)) })
}

// module implements device.Module.
type module struct {
	device *opened
	name   string
	handle C.CUmodule
}

func (m *module) Function(name string) (device.Function, error) {
	f := &function{name: name}
	wanted := C.CString(name)
	defer C.free(unsafe.Pointer(wanted))
	d := m.device
	if err := d.check("cuModuleGetFunction", C.siafu_function(d.calls, d.context, &f.handle, m.handle, wanted)); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", m.name, name, err)
	}
	return f, nil
}

func (m *module) Global(name string) (device.Ptr, int, error) {
	wanted := C.CString(name)
	defer C.free(unsafe.Pointer(wanted))
	var at C.CUdeviceptr
	var bytes C.size_t
	d := m.device
	if err := d.check("cuModuleGetGlobal", C.siafu_global(d.calls, d.context, &at, &bytes, m.handle, wanted)); err != nil {
		return 0, 0, fmt.Errorf("%s: %s: %w", m.name, name, err)
	}
	return device.Ptr(at), int(bytes), nil
}

func (m *module) Unload() error { return m.device.resources.End(m) }

// function implements device.Function.
type function struct {
	name   string
	handle C.CUfunction
}

func (f *function) Name() string { return f.name }
