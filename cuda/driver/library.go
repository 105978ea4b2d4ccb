//go:build cgo

package driver

/*
#cgo linux LDFLAGS: -ldl
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"siafu/cuda/device"
	"siafu/internal/fault"
)

// library is the initialised driver. Its calls are in C memory that is never freed: there is
// one library per process.
type library struct{ calls *C.siafu_driver }

// loaded is the library of this host.
var loaded = sync.OnceValues(func() (*library, error) { return load(Library) })

// load opens a library and starts the driver.
func load(name string) (*library, error) {
	l := &library{(*C.siafu_driver)(C.calloc(1, C.size_t(unsafe.Sizeof(C.siafu_driver{}))))}
	path := C.CString(name)
	defer C.free(unsafe.Pointer(path))
	if wrong := C.siafu_open(path, l.calls); wrong != nil {
		return nil, absent(errors.New(C.GoString(wrong)))
	}
	if code := C.siafu_init(l.calls); code != 0 {
		return nil, l.dormant(code)
	}
	return l, nil
}

// absent returns the error of a library that is missing or lacks a call.
func absent(err error) error {
	e := fault.New(fault.Config, "cuda", "", "no NVIDIA driver of CUDA 11.4 or later is installed")
	e.Err = err
	return e.Then("install the driver of this host's GPU (nvidia-smi then lists it), or compute on the CPU with --tensor cpu")
}

// dormant returns the error of a driver that does not start.
func (l *library) dormant(code C.CUresult) error {
	if code == C.SIAFU_NO_DEVICE {
		return NoGPU(l.check("cuInit", code))
	}
	e := fault.New(fault.Config, "cuda", "", "the NVIDIA driver of this host does not start")
	e.Err = l.check("cuInit", code)
	return e.Then("check nvidia-smi, or compute on the CPU with --tensor cpu")
}

// check returns the error of a call's code, nil if it is 0.
func (l *library) check(call string, code C.CUresult) error {
	if code == 0 {
		return nil
	}
	name, text := C.GoString(C.siafu_text(l.calls, code, 1)), C.GoString(C.siafu_text(l.calls, code, 0))
	if name == "" {
		name, text = fmt.Sprint("CUDA error ", code), "unknown to the driver"
	}
	switch code {
	case C.SIAFU_OUT_OF_MEMORY:
		return fmt.Errorf("%s: %s: %w", call, name, device.ErrMemory)
	case C.SIAFU_NOT_FOUND:
		return fmt.Errorf("%s: %s: %w", call, name, device.ErrNotFound)
	}
	return fmt.Errorf("%s: %s: %s", call, name, text)
}

// count returns the number of GPUs, at least one.
func (l *library) count() (int, error) {
	var n C.int
	if code := C.siafu_count(l.calls, &n); code != 0 && code != C.SIAFU_NO_DEVICE {
		return 0, l.check("cuDeviceGetCount", code)
	}
	if n == 0 {
		return 0, NoGPU(nil)
	}
	return int(n), nil
}

// version returns the newest CUDA version that the driver supports.
func (l *library) version() (string, error) {
	var v C.int
	err := l.check("cuDriverGetVersion", C.siafu_version(l.calls, &v))
	return fmt.Sprintf("%d.%d", v/1000, v%1000/10), err
}

// find returns GPU n and its description.
func (l *library) find(n int) (handle C.CUdevice, g GPU, err error) {
	if g.Driver, err = l.version(); err != nil {
		return handle, g, err
	}
	if err := l.check("cuDeviceGet", C.siafu_device(l.calls, &handle, C.int(n))); err != nil {
		return handle, g, err
	}
	var name [256]C.char
	if err := l.check("cuDeviceGetName", C.siafu_name(l.calls, &name[0], C.int(len(name)-1), handle)); err != nil {
		return handle, g, err
	}
	g.Name = C.GoString(&name[0])
	var id C.CUuuid
	if err := l.check("cuDeviceGetUuid", C.siafu_id(l.calls, &id, handle)); err != nil {
		return handle, g, err
	}
	g.ID = fmt.Sprintf("%x", C.GoBytes(unsafe.Pointer(&id), C.int(unsafe.Sizeof(id))))
	var bytes C.size_t
	err = l.check("cuDeviceTotalMem", C.siafu_total(l.calls, &bytes, handle))
	g.Memory = int64(bytes)
	return handle, g, err
}

// List returns the GPUs of this host that this process may use, at least one, without creating
// a context.
func List() ([]GPU, error) {
	if binding != nil {
		return binding.List()
	}
	l, err := loaded()
	if err != nil {
		return nil, err
	}
	return l.list()
}

func (l *library) list() ([]GPU, error) {
	n, err := l.count()
	if err != nil {
		return nil, err
	}
	gpus := make([]GPU, n)
	for i := range gpus {
		if _, gpus[i], err = l.find(i); err != nil {
			return nil, err
		}
	}
	return gpus, nil
}

// Open opens GPU n of List, with the process's context on it, which all devices opened in the
// process share.
func Open(n int) (device.Device, error) {
	if binding != nil {
		return binding.Open(n)
	}
	l, err := loaded()
	if err != nil {
		return nil, err
	}
	d, err := l.open(n)
	if err != nil {
		return nil, Unusable(n, err)
	}
	return d, nil
}
