package ptx

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"siafu/cuda/device"
)

// stream implements device.Stream. Its work runs when its end is awaited, the latest time that
// a device may run it.
type stream struct {
	device *Device
	queue  []func() error
	// Works are counted from 1: done <= queued, and the first of queue is done + 1.
	done, queued int64
	held         int // bytes of copies in the queue
	closed       bool
}

// Limits of a queue, after which its work runs.
const (
	maxQueue = 4096
	maxHeld  = 64 << 20
)

// NewStream implements device.Device.
func (d *Device) NewStream() (device.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	s := &stream{device: d}
	d.streams = append(d.streams, s)
	return s, nil
}

// locked makes a call of the stream under the device's lock.
func (s *stream) locked(call func() error) error {
	return s.device.locked(func() error {
		if s.closed {
			return fmt.Errorf("ptx: the stream is closed")
		}
		return call()
	})
}

// onBytes calls do under the device's lock with the region and the offset of n bytes at p. It
// does nothing for 0 bytes. verb names the access in findings.
func (s *stream) onBytes(p device.Ptr, n int, verb string, do func(r *region, o uint64) error) error {
	return s.locked(func() error {
		r, o, err := s.device.bytes(p, n, verb)
		if err != nil || n == 0 {
			return err
		}
		return do(r, o)
	})
}

// add queues work that holds the given bytes.
func (s *stream) add(held int, work func() error) error {
	s.queue = append(s.queue, work)
	s.queued++
	s.held += held
	if len(s.queue) > maxQueue || s.held > maxHeld {
		return s.run(s.queued)
	}
	return nil
}

// run runs the work up to number upto. An error makes the device fail.
func (s *stream) run(upto int64) error {
	d := s.device
	for s.done < upto && d.failed == nil {
		work := s.queue[0]
		s.queue = s.queue[1:]
		s.done++
		if err := work(); err != nil {
			d.failed = err
		}
	}
	if len(s.queue) == 0 {
		s.queue, s.held = nil, 0
	}
	return d.failed
}

func (s *stream) CopyIn(dst device.Ptr, src []byte) error {
	return s.onBytes(dst, len(src), "a copy to the device", func(r *region, o uint64) error {
		src = bytes.Clone(src)
		return s.add(len(src), func() error {
			copy(r.data[o:], src)
			r.written(o, len(src))
			return nil
		})
	})
}

// CopyOut implements device.Stream. An unwritten byte is a Finding.
func (s *stream) CopyOut(dst []byte, src device.Ptr) error {
	return s.onBytes(src, len(dst), "a copy from the device", func(r *region, o uint64) error {
		if err := s.run(s.queued); err != nil {
			return err
		}
		return r.copyOut(dst, o)
	})
}

// Copy implements device.Stream. Bytes unwritten at src count as unwritten at dst.
func (s *stream) Copy(dst, src device.Ptr, n int) error {
	return s.locked(func() error {
		to, i, err := s.device.bytes(dst, n, "a copy to here")
		if err != nil {
			return err
		}
		from, j, err := s.device.bytes(src, n, "a copy from here")
		if err != nil || n == 0 {
			return err
		}
		if to == from && i < j+uint64(n) && j < i+uint64(n) {
			return fmt.Errorf("ptx: a copy of %d bytes from %#x to %#x, which overlap", n, src, dst)
		}
		return s.add(0, func() error {
			copy(to.data[i:i+uint64(n)], from.data[j:])
			duplicate(to, from, i, j, n)
			return nil
		})
	})
}

// duplicate copies the written state of n bytes from j of one region to i of another.
func duplicate(to, from *region, i, j uint64, n int) {
	to.at(i, n)
	from.at(j, n)
	for to.grain > from.grain {
		to.refine(i, 1<<from.grain)
	}
	for from.grain > to.grain {
		from.refine(j, 1<<to.grain)
	}
	source := from.at(j, n)
	for k, c := range source {
		written := stamp(0)
		if c.write > from.floor {
			written = host
		}
		to.cells[i>>to.grain+uint64(k)] = cell{write: written}
	}
}

func (s *stream) Set(dst device.Ptr, b byte, n int) error {
	return s.onBytes(dst, n, "a fill", func(r *region, o uint64) error {
		return s.add(0, func() error {
			part := r.data[o : o+uint64(n)]
			for i := range part {
				part[i] = b
			}
			r.written(o, n)
			return nil
		})
	})
}

func (s *stream) Launch(f device.Function, l device.Launch, args *device.Args) error {
	return s.locked(func() error {
		e, ok := f.(*entry)
		if !ok || e.device != s.device || e.module.gone {
			return fmt.Errorf("ptx: a launch of %v, which is no function of a module of this device", f)
		}
		for i := range 3 {
			l.Grid[i], l.Block[i] = max(l.Grid[i], 1), max(l.Block[i], 1)
		}
		var given device.Args
		if args != nil {
			given = *args
		}
		if err := e.check(l, &given); err != nil {
			return err
		}
		params := bytes.Clone(given.Bytes())
		return s.add(len(params), func() error { return s.device.execute(e.kernel, l, params) })
	})
}

// check returns an error about the shape or the parameters of a launch.
func (e *entry) check(l device.Launch, args *device.Args) error {
	k := e.kernel
	p := e.device.Properties()
	bad := func(format string, args ...any) error {
		return &Finding{Kind: BadLaunch, Kernel: k.name, Module: k.mod.name, Detail: fmt.Sprintf(format, args...)}
	}
	threads := 1
	for i := range 3 {
		if l.Block[i] > p.Block[i] || l.Grid[i] > p.Grid[i] {
			return bad("a grid %v of blocks %v, of at most %v and %v", l.Grid, l.Block, p.Grid, p.Block)
		}
		threads *= l.Block[i]
	}
	switch {
	case threads > p.ThreadsPerBlock:
		return bad("%d threads a block, of at most %d", threads, p.ThreadsPerBlock)
	case k.threads > 0 && threads > k.threads:
		return bad("%d threads a block, of at most %d of this kernel", threads, k.threads)
	case l.Shared < 0 || k.sharedLen+l.Shared > p.SharedPerBlock:
		return bad("%d and %d bytes of shared memory a block, of at most %d", k.sharedLen, l.Shared, p.SharedPerBlock)
	case len(args.Offsets()) != len(k.params):
		return bad("%d parameters, but the kernel has %d", len(args.Offsets()), len(k.params))
	}
	for i, at := range args.Offsets() {
		next := len(args.Bytes())
		if i+1 < len(k.params) {
			next = args.Offsets()[i+1]
		}
		size := k.params[i].size
		if at != k.offsets[i] || next-at < size || i+1 == len(k.params) && next-at != size {
			return bad("parameter %d has %d bytes at %d, expected %d at %d", i, next-at, at, size, k.offsets[i])
		}
	}
	return nil
}

// execute runs a grid, and returns its finding.
func (d *Device) execute(k *kernel, l device.Launch, params []byte) (err error) {
	b := newBlock(d, k, l.Grid, l.Block, l.Shared, params)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Finding:
			err = p
		default:
			err = fmt.Errorf("ptx: kernel %s, block %v: the interpreter failed: %v", k.name, b.at, p)
		}
	}()
	b.run()
	return nil
}

func (s *stream) Synchronize() error {
	return s.locked(func() error { return s.run(s.queued) })
}

func (s *stream) Close() error {
	return s.locked(func() error {
		err := s.run(s.queued)
		s.closed = true
		s.device.streams = slices.DeleteFunc(s.device.streams, func(t *stream) bool { return t == s })
		return err
	})
}

// event implements device.Event: the end of work upto of a stream.
type event struct {
	device *Device
	stream *stream // nil until it is recorded
	upto   int64
	asked  bool // since it was recorded
	when   time.Time
}

// NewEvent implements device.Device.
func (d *Device) NewEvent() (device.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &event{device: d}, d.usable()
}

// own returns e as an event of this device.
func (s *stream) own(e device.Event) (*event, error) {
	v, ok := e.(*event)
	if !ok || v.device != s.device {
		return nil, fmt.Errorf("ptx: an event of another device")
	}
	return v, nil
}

func (s *stream) Record(e device.Event) error {
	return s.locked(func() error {
		v, err := s.own(e)
		if err != nil {
			return err
		}
		v.stream, v.upto, v.asked = s, s.queued+1, false
		return s.add(0, func() error {
			v.when = time.Now()
			return nil
		})
	})
}

func (s *stream) Wait(e device.Event) error {
	return s.locked(func() error {
		v, err := s.own(e)
		if err != nil || v.stream == nil {
			return err
		}
		on, upto := v.stream, v.upto
		// Work waits only for work queued earlier, so that there is no deadlock.
		return s.add(0, func() error { return on.run(upto) })
	})
}

// Done implements device.Event. The first call reports that unawaited work is still running; a
// second call runs it.
func (e *event) Done() (bool, error) {
	if e.delay() {
		return false, nil
	}
	err := e.Synchronize()
	return err == nil, err
}

// delay reports whether this is the first query of e since it was recorded, and e has not
// happened.
func (e *event) delay() bool {
	e.device.mu.Lock()
	defer e.device.mu.Unlock()
	first := !e.asked && e.stream != nil && e.stream.done < e.upto
	e.asked = true
	return first && e.device.usable() == nil
}

func (e *event) Synchronize() error {
	return e.device.locked(func() error {
		if e.stream == nil {
			return nil
		}
		return e.stream.run(e.upto)
	})
}

func (e *event) Since(start device.Event) (float64, error) {
	from, ok := start.(*event)
	if !ok || from.stream == nil || e.stream == nil {
		return 0, fmt.Errorf("ptx: the time between events of which one was not recorded")
	}
	if err := e.Synchronize(); err != nil {
		return 0, err
	}
	if err := from.Synchronize(); err != nil {
		return 0, err
	}
	return float64(e.when.Sub(from.when).Microseconds()) / 1000, nil
}

func (e *event) Close() error { return nil }
