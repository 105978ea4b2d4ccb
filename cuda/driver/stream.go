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

// stream implements device.Stream.
type stream struct {
	device *opened
	handle C.CUstream
}

func (d *opened) NewStream() (device.Stream, error) {
	s := &stream{device: d}
	return device.Create[device.Stream](&d.resources, s,
		func() error { return d.check("cuStreamCreate", C.siafu_stream(d.calls, d.context, &s.handle)) },
		func() error { return d.check("cuStreamDestroy", C.siafu_stream_end(d.calls, d.context, s.handle)) })
}

// CopyIn implements device.Stream. The driver may read host memory that is not pinned after
// its call, so that the copy must be awaited.
func (s *stream) CopyIn(dst device.Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	return device.Waited(s, s.BeginIn(dst, src))
}

func (s *stream) BeginIn(dst device.Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	d := s.device
	return d.check("cuMemcpyHtoDAsync",
		C.siafu_in(d.calls, d.context, s.handle, C.CUdeviceptr(dst), unsafe.Pointer(unsafe.SliceData(src)), C.size_t(len(src))))
}

func (s *stream) CopyOut(dst []byte, src device.Ptr) error {
	return device.Waited(s, s.BeginOut(dst, src))
}

func (s *stream) BeginOut(dst []byte, src device.Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	d := s.device
	return d.check("cuMemcpyDtoHAsync",
		C.siafu_out(d.calls, d.context, s.handle, unsafe.Pointer(unsafe.SliceData(dst)), C.CUdeviceptr(src), C.size_t(len(dst))))
}

func (s *stream) Copy(dst, src device.Ptr, bytes int) error {
	if bytes == 0 {
		return nil
	}
	d := s.device
	return d.check("cuMemcpyDtoDAsync", C.siafu_copy(d.calls, d.context, s.handle, C.CUdeviceptr(dst), C.CUdeviceptr(src), C.size_t(bytes)))
}

func (s *stream) Set(dst device.Ptr, b byte, bytes int) error {
	if bytes == 0 {
		return nil
	}
	d := s.device
	return d.check("cuMemsetD8Async", C.siafu_set(d.calls, d.context, s.handle, C.CUdeviceptr(dst), C.uchar(b), C.size_t(bytes)))
}

func (s *stream) Launch(f device.Function, l device.Launch, args *device.Args) error {
	entry, ok := f.(*function)
	if !ok {
		return fmt.Errorf("cuda: %s is a function of another device", f.Name())
	}
	grid, block, ok := l.Extents()
	if !ok {
		return fmt.Errorf("cuda: %s: invalid shape %+v", f.Name(), l)
	}
	d, parameters := s.device, args.Bytes()
	code := C.siafu_launch(d.calls, d.context, s.handle, entry.handle, (*C.uint)(&grid[0]), (*C.uint)(&block[0]), C.uint(l.Shared),
		unsafe.Pointer(unsafe.SliceData(parameters)), C.size_t(len(parameters)))
	if err := d.check("cuLaunchKernel", code); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

func (s *stream) Record(e device.Event) error {
	d := s.device
	return d.check("cuEventRecord", C.siafu_event_record(d.calls, d.context, e.(*event).handle, s.handle))
}

func (s *stream) Wait(e device.Event) error {
	d := s.device
	return d.check("cuStreamWaitEvent", C.siafu_stream_wait(d.calls, d.context, s.handle, e.(*event).handle))
}

func (s *stream) Synchronize() error {
	d := s.device
	return d.check("cuStreamSynchronize", C.siafu_stream_synchronize(d.calls, d.context, s.handle))
}

func (s *stream) Close() error { return s.device.resources.End(s) }

// event implements device.Event.
type event struct {
	device *opened
	handle C.CUevent
}

func (d *opened) NewEvent() (device.Event, error) {
	e := &event{device: d}
	return device.Create[device.Event](&d.resources, e,
		func() error { return d.check("cuEventCreate", C.siafu_event(d.calls, d.context, &e.handle)) },
		func() error { return d.check("cuEventDestroy", C.siafu_event_end(d.calls, d.context, e.handle)) })
}

func (e *event) Done() (bool, error) {
	d := e.device
	code := C.siafu_event_query(d.calls, d.context, e.handle)
	if code == C.SIAFU_NOT_READY {
		return false, nil
	}
	return code == 0, d.check("cuEventQuery", code)
}

func (e *event) Synchronize() error {
	d := e.device
	return d.check("cuEventSynchronize", C.siafu_event_synchronize(d.calls, d.context, e.handle))
}

func (e *event) Since(start device.Event) (float64, error) {
	var ms C.float
	d := e.device
	err := d.check("cuEventElapsedTime", C.siafu_event_since(d.calls, d.context, &ms, start.(*event).handle, e.handle))
	return float64(ms), err
}

func (e *event) Close() error { return e.device.resources.End(e) }
