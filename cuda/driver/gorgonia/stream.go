//go:build cu

package gorgonia

import (
	"errors"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"siafu/cuda/device"
)

// stream implements device.Stream.
type stream struct {
	device *gpu
	handle cu.Stream
}

func (d *gpu) NewStream() (device.Stream, error) {
	s := &stream{device: d}
	return device.Create[device.Stream](&d.resources, s, func() error {
		return d.in("cuStreamCreate", func() (err error) {
			s.handle, err = cu.MakeStream(cu.NonBlocking)
			return err
		})
	}, func() error { return d.in("cuStreamDestroy", s.handle.Destroy) })
}

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
	return s.device.in("cuMemcpyHtoDAsync", func() error {
		return cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(unsafe.SliceData(src)), int64(len(src)), s.handle)
	})
}

func (s *stream) CopyOut(dst []byte, src device.Ptr) error {
	return device.Waited(s, s.BeginOut(dst, src))
}

func (s *stream) BeginOut(dst []byte, src device.Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	return s.device.in("cuMemcpyDtoHAsync", func() error {
		return cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(dst)), cu.DevicePtr(src), int64(len(dst)), s.handle)
	})
}

func (s *stream) Copy(dst, src device.Ptr, bytes int) error {
	if bytes == 0 {
		return nil
	}
	return s.device.in("cuMemcpyDtoDAsync", func() error {
		return cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), int64(bytes), s.handle)
	})
}

func (s *stream) Set(dst device.Ptr, b byte, bytes int) error {
	if bytes == 0 {
		return nil
	}
	return s.device.in("cuMemsetD8Async", func() error {
		return cu.MemsetD8Async(cu.DevicePtr(dst), b, int64(bytes), s.handle)
	})
}

func (s *stream) Launch(f device.Function, l device.Launch, args *device.Args) error {
	entry, ok := f.(*function)
	if !ok {
		return fmt.Errorf("cuda: %s is a function of another device", f.Name())
	}
	grid, block, fits := l.Extents()
	parameters, passed := slots(args)
	if !fits || !passed {
		return fmt.Errorf("cuda: %s: gorgonia.org/cu cannot launch the shape %+v with %d bytes of parameters",
			f.Name(), l, len(args.Bytes()))
	}
	err := s.device.in("cuLaunchKernel", func() error {
		return entry.handle.Launch(int(grid[0]), int(grid[1]), int(grid[2]), int(block[0]), int(block[1]), int(block[2]),
			l.Shared, s.handle, parameters)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// slots returns pointers to copies of the parameters. cu reads 8 bytes of each; ok is
// false if one is longer.
func slots(args *device.Args) (parameters []unsafe.Pointer, ok bool) {
	bytes, offsets := args.Bytes(), args.Offsets()
	values := make([][8]byte, len(offsets))
	for i, start := range offsets {
		end := len(bytes)
		if i+1 < len(offsets) {
			end = offsets[i+1]
		}
		if end-start > len(values[i]) {
			return nil, false
		}
		copy(values[i][:], bytes[start:end])
		parameters = append(parameters, unsafe.Pointer(&values[i]))
	}
	return parameters, true
}

func (s *stream) Record(e device.Event) error {
	return s.device.in("cuEventRecord", func() error { return e.(*event).handle.Record(s.handle) })
}

func (s *stream) Wait(e device.Event) error {
	return s.device.in("cuStreamWaitEvent", func() error { return s.handle.Wait(e.(*event).handle, 0) })
}

func (s *stream) Synchronize() error { return s.device.in("cuStreamSynchronize", s.handle.Synchronize) }

func (s *stream) Close() error { return s.device.resources.End(s) }

// event implements device.Event.
type event struct {
	device *gpu
	handle cu.Event
}

func (d *gpu) NewEvent() (device.Event, error) {
	e := &event{device: d}
	return device.Create[device.Event](&d.resources, e, func() error {
		return d.in("cuEventCreate", func() (err error) {
			e.handle, err = cu.MakeEvent(cu.DefaultEvent)
			return err
		})
	}, func() error { return d.in("cuEventDestroy", func() error { return cu.DestroyEvent(&e.handle) }) })
}

func (e *event) Done() (bool, error) {
	err := e.device.in("cuEventQuery", e.handle.Query)
	if errors.Is(err, cu.NotReady) {
		return false, nil
	}
	return err == nil, err
}

func (e *event) Synchronize() error { return e.device.in("cuEventSynchronize", e.handle.Synchronize) }

func (e *event) Since(start device.Event) (ms float64, err error) {
	err = e.device.in("cuEventElapsedTime", func() (err error) {
		ms, err = start.(*event).handle.Elapsed(e.handle)
		return err
	})
	return ms, err
}

func (e *event) Close() error { return e.device.resources.End(e) }
