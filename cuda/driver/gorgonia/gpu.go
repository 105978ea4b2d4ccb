//go:build cu

package gorgonia

/*
#cgo LDFLAGS: -lcuda
#include <cuda.h>

static void *siafu_set_current(void) { return (void *)cuCtxSetCurrent; }
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"gorgonia.org/cu"

	"siafu/cuda/device"
	"siafu/cuda/driver"
)

func init() { driver.Use(driver.Binding{List: list, Open: open}) }

// gpu implements device.Device and device.Threaded.
type gpu struct {
	handle     cu.Device
	context    cu.CUContext
	properties device.Properties
	resources  device.Resources
}

var _ device.Threaded = (*gpu)(nil)

// check adds the name of a call to its error. The errors of package device are known by
// errors.Is.
func check(call string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, cu.OutOfMemory):
		return fmt.Errorf("%s: %w: %w", call, err, device.ErrMemory)
	case errors.Is(err, cu.NotFound):
		return fmt.Errorf("%s: %w: %w", call, err, device.ErrNotFound)
	}
	return fmt.Errorf("%s: %w", call, err)
}

// code returns the error of this package's own calls.
func code(c C.CUresult) error {
	if c == C.CUDA_SUCCESS {
		return nil
	}
	return fmt.Errorf("CUDA error %d", c)
}

// in calls f on a thread that has the device's context.
func (d *gpu) in(call string, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cu.SetCurrentContext(d.context)
	if err == nil {
		err = f()
	}
	return check(call, err)
}

// list implements driver.List.
func list() ([]driver.GPU, error) {
	n, err := cu.NumDevices()
	if err != nil || n == 0 {
		return nil, driver.NoGPU(check("cuDeviceGetCount", err))
	}
	gpus := make([]driver.GPU, n)
	for i := range gpus {
		if _, gpus[i], err = find(i); err != nil {
			return nil, err
		}
	}
	return gpus, nil
}

// find returns GPU n and its description.
func find(n int) (handle cu.Device, g driver.GPU, err error) {
	if handle, err = cu.GetDevice(n); err != nil {
		return handle, g, check("cuDeviceGet", err)
	}
	version := cu.Version()
	g.Driver = fmt.Sprintf("%d.%d", version/1000, version%1000/10)
	if g.Name, err = handle.Name(); err != nil {
		return handle, g, check("cuDeviceGetName", err)
	}
	id, err := handle.UUID()
	if err != nil {
		return handle, g, check("cuDeviceGetUuid", err)
	}
	g.ID = fmt.Sprintf("%x", id[:])
	g.Memory, err = handle.TotalMem()
	return handle, g, check("cuDeviceTotalMem", err)
}

// open implements driver.Open.
func open(n int) (device.Device, error) {
	d, err := openGPU(n)
	if err != nil {
		return nil, driver.Unusable(n, err)
	}
	return d, nil
}

// openGPU retains the primary context of GPU n, which all its devices share.
func openGPU(n int) (*gpu, error) {
	handle, g, err := find(n)
	if err != nil {
		return nil, err
	}
	d := &gpu{handle: handle}
	if d.properties, err = describe(handle, g); err != nil {
		return nil, err
	}
	if err := driver.Supported(n, d.properties); err != nil {
		return nil, err
	}
	d.context, err = handle.RetainPrimaryCtx()
	if err != nil {
		return nil, check("cuDevicePrimaryCtxRetain", err)
	}
	return d, nil
}

// describe returns all properties of a GPU.
func describe(handle cu.Device, g driver.GPU) (p device.Properties, err error) {
	p.Name, p.Driver = g.Name, g.Driver
	for _, a := range []struct {
		to    *int
		which cu.DeviceAttribute
	}{
		{&p.Major, cu.ComputeCapabilityMajor}, {&p.Minor, cu.ComputeCapabilityMinor},
		{&p.Multiprocessors, cu.MultiprocessorCount}, {&p.WarpSize, cu.WarpSize},
		{&p.MemoryClock, cu.MemoryClockRate}, {&p.MemoryBus, cu.GlobalMemoryBusWidth},
		{&p.ThreadsPerBlock, cu.MaxThreadsPerBlock}, {&p.SharedPerBlock, cu.MaxSharedMemoryPerBlock},
		{&p.Block[0], cu.MaxBlockDimX}, {&p.Block[1], cu.MaxBlockDimY}, {&p.Block[2], cu.MaxBlockDimZ},
		{&p.Grid[0], cu.MaxGridDimX}, {&p.Grid[1], cu.MaxGridDimY}, {&p.Grid[2], cu.MaxGridDimZ},
	} {
		if *a.to, err = handle.Attribute(a.which); err != nil {
			return p, check("cuDeviceGetAttribute", err)
		}
	}
	return p, nil
}

func (d *gpu) Thread() (call, context unsafe.Pointer) {
	var current C.CUcontext
	err := d.in("cuCtxGetCurrent", func() error { return code(C.cuCtxGetCurrent(&current)) })
	if err != nil {
		return nil, nil
	}
	return C.siafu_set_current(), unsafe.Pointer(current)
}

func (d *gpu) Properties() device.Properties { return d.properties }

func (d *gpu) Memory() (free, total int64, err error) {
	err = d.in("cuMemGetInfo", func() (err error) {
		free, total, err = cu.MemInfo()
		return err
	})
	return free, total, err
}

func (d *gpu) Alloc(bytes int) (device.Ptr, error) {
	if bytes < 0 {
		return 0, fmt.Errorf("cuda: %d bytes: %w", bytes, device.ErrMemory)
	}
	var at cu.DevicePtr
	err := d.resources.Add(func() (any, error) {
		err := d.in("cuMemAlloc", func() (err error) {
			at, err = cu.MemAlloc(int64(max(bytes, 1))) // the driver refuses 0 bytes
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%d bytes: %w", bytes, err)
		}
		return device.Ptr(at), nil
	}, func() error { return d.in("cuMemFree", func() error { return cu.MemFree(at) }) })
	return device.Ptr(at), err
}

func (d *gpu) Free(p device.Ptr) error {
	if err := d.Synchronize(); err != nil {
		return err
	}
	return d.resources.End(p)
}

// pinned is the address of page-locked memory, as a key of resources.
type pinned uintptr

func (d *gpu) Pin(b []byte) error {
	at := unsafe.Pointer(unsafe.SliceData(b))
	_, err := device.Create(&d.resources, pinned(at), func() error {
		return d.in("cuMemHostRegister", func() error {
			return code(C.cuMemHostRegister(at, C.size_t(len(b)), C.CU_MEMHOSTREGISTER_PORTABLE))
		})
	}, func() error {
		return d.in("cuMemHostUnregister", func() error { return code(C.cuMemHostUnregister(at)) })
	})
	return err
}

func (d *gpu) Unpin(b []byte) error {
	return d.resources.End(pinned(unsafe.Pointer(unsafe.SliceData(b))))
}

func (d *gpu) Synchronize() error { return d.in("cuCtxSynchronize", cu.Synchronize) }

func (d *gpu) Close() error {
	return d.resources.Close(d.Synchronize, func() error {
		return check("cuDevicePrimaryCtxRelease", d.handle.ReleasePrimaryCtx())
	})
}
