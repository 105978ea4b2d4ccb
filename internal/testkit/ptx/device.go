package ptx

import (
	"fmt"
	"slices"
	"sync"

	"siafu/cuda/device"
)

// Settings are the options of New. The zero value has the defaults.
type Settings struct {
	Memory int64 // bytes of the device; 4 GiB
	Budget int64 // instructions that a warp may run in a launch and block; 1<<28
	// Backwards runs the last block of a grid, and the last warp of a block, first. Results
	// should not depend on it.
	Backwards bool
	// Pageable makes Pin fail, as on a system with a limit.
	Pageable bool
	// Libraries adds stand-ins for cuBLAS and cuSPARSE.
	Libraries bool
}

// Device is a stand-in for a GPU. It implements device.Device.
type Device struct {
	mu       sync.Mutex
	settings Settings
	regions  []*region // in ascending order, including freed ones
	used     int64
	nextBase uint64
	count    int
	segment  stamp // the last one of all launches
	streams  []*stream
	host     hostMemory
	failed   error // error that every call returns
	closed   bool
	executed int64
}

var _ device.Device = (*Device)(nil)

// New makes a device without allocations.
func New(s Settings) *Device {
	if s.Memory == 0 {
		s.Memory = 4 << 30
	}
	if s.Budget == 0 {
		s.Budget = 1 << 28
	}
	return &Device{settings: s, nextBase: globalBase, segment: host}
}

// Properties implements device.Device: the guaranteed properties of compute capability 7.0.
func (d *Device) Properties() device.Properties {
	return device.Properties{
		Name: "PTX interpreter (a checker, no GPU)", Driver: "none",
		Major: 7, Minor: 0, Multiprocessors: 1, WarpSize: lanes,
		ThreadsPerBlock: 1024, SharedPerBlock: 48 << 10,
		Block: [3]int{1024, 1024, 64}, Grid: [3]int{1<<31 - 1, 65535, 65535},
	}
}

// Instructions returns the number of thread instructions so far, including ones disabled by a
// guard.
func (d *Device) Instructions() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.executed
}

// usable returns the error of a device that is closed or has failed.
func (d *Device) usable() error {
	if d.closed {
		return fmt.Errorf("ptx: the device is closed")
	}
	return d.failed
}

// locked makes a call of a usable device under its lock.
func (d *Device) locked(call func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	return call()
}

// Memory implements device.Device.
func (d *Device) Memory() (free, total int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settings.Memory - d.used, d.settings.Memory, d.usable()
}

// Alloc implements device.Device. No address is given twice.
func (d *Device) Alloc(bytes int) (p device.Ptr, err error) {
	err = d.locked(func() error {
		d.count++
		r, err := d.allocate(fmt.Sprintf("allocation %d", d.count), bytes)
		if err == nil {
			p = device.Ptr(r.base)
		}
		return err
	})
	return p, err
}

// allocate makes a region, with guards on both sides.
func (d *Device) allocate(name string, bytes int) (*region, error) {
	if bytes < 0 || int64(bytes) > d.settings.Memory-d.used {
		return nil, fmt.Errorf("ptx: %d bytes beside %d of %d: %w", bytes, d.used, d.settings.Memory, device.ErrMemory)
	}
	d.nextBase += guard
	r := newRegion(name, d.nextBase, bytes, 1)
	d.nextBase = (d.nextBase + uint64(bytes) + 255) &^ 255
	d.used += int64(bytes)
	d.forget()
	d.regions = append(d.regions, r)
	return r, nil
}

// maxFreed is the maximum number of remembered freed regions.
const maxFreed = 1 << 16

// forget drops freed regions once they are many and the majority.
func (d *Device) forget() {
	if len(d.regions) < maxFreed {
		return
	}
	freed := func(r *region) bool { return r.data == nil }
	kept := slices.DeleteFunc(slices.Clone(d.regions), freed)
	if len(kept) <= len(d.regions)/2 {
		d.regions = kept
	}
}

// region returns the last region that starts at or before addr, or nil.
func (d *Device) region(addr uint64) *region { return within(d.regions, addr) }

// Free implements device.Device.
func (d *Device) Free(p device.Ptr) error {
	return d.drained(func() error { return d.release(uint64(p)) })
}

func (d *Device) release(base uint64) error {
	r := d.region(base)
	if r == nil || r.base != base || r.data == nil {
		return fmt.Errorf("ptx: free of %#x, which is no allocation", base)
	}
	d.used -= int64(r.size)
	r.name = r.String()
	r.size, r.data, r.cells = 0, nil, nil
	return nil
}

// bytes returns the region and the offset of n bytes at p, all in one allocation.
func (d *Device) bytes(p device.Ptr, n int, verb string) (*region, uint64, error) {
	r := d.region(uint64(p))
	if r != nil {
		if o := uint64(p) - r.base; n >= 0 && o <= r.size && r.size-o >= uint64(n) && r.data != nil {
			return r, o, nil
		}
	}
	return nil, 0, &Finding{Kind: OutOfBounds, Detail: verb, Address: uint64(p), Bytes: n, Allocation: r.beside(uint64(p))}
}

// Load implements device.Device.
func (d *Device) Load(name, text string) (m device.Module, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, fmt.Errorf("ptx: %s: the interpreter failed: %v", name, p)
		}
	}()
	parsed, err := cached.parse(name, text)
	if err != nil {
		return nil, err
	}
	l := &loaded{module: parsed, globals: map[string]*region{}, shared: map[string]*variable{}, kernels: map[string]*kernel{}}
	if err := d.link(l); err != nil {
		d.unload(l)
		return nil, err
	}
	return &loadedModule{device: d, loaded: l}, nil
}

// link allocates the variables of a module and makes its kernels.
func (d *Device) link(l *loaded) error {
	for _, v := range l.variables {
		if v.space == shared {
			l.shared[v.name] = v
			continue
		}
		if l.globals[v.name] != nil || v.extern {
			return l.located(&Error{Line: v.line, Detail: "variable " + v.name + " is defined twice or nowhere"})
		}
		r, err := d.allocate("variable "+v.name, v.size)
		if err != nil {
			return err
		}
		r.fixed = v.space == constant
		copy(r.data, v.initial)
		r.written(0, len(r.data))
		l.globals[v.name] = r
	}
	for _, v := range l.variables {
		for _, ref := range v.refs {
			to := l.globals[ref.sym]
			if to == nil {
				return l.located(&Error{Line: v.line, Detail: "no variable " + ref.sym})
			}
			l.globals[v.name].setWord(uint64(ref.at), 8, to.base+uint64(ref.plus))
		}
	}
	return cached.compile(l)
}

// unload frees the memory of a module's variables.
func (d *Device) unload(l *loaded) {
	for _, r := range l.globals {
		d.release(r.base)
	}
	clear(l.globals)
}

// Synchronize implements device.Device.
func (d *Device) Synchronize() error {
	return d.drained(func() error { return nil })
}

// drained makes a call of a usable device under its lock after the work of all streams.
func (d *Device) drained(call func() error) error {
	return d.locked(func() error {
		if err := d.drain(); err != nil {
			return err
		}
		return call()
	})
}

// drain runs the work of all streams, in the order of their creation.
func (d *Device) drain() error {
	if err := d.usable(); err != nil {
		return err
	}
	for _, s := range d.streams {
		if err := s.run(s.queued); err != nil {
			return err
		}
	}
	return nil
}

// Close implements device.Device.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	err := d.drain()
	d.closed, d.regions, d.streams = true, nil, nil
	return err
}

// loadedModule implements device.Module.
type loadedModule struct {
	device *Device
	*loaded
	gone bool
}

func (m *loadedModule) Function(name string) (device.Function, error) {
	k := m.kernels[name]
	if k == nil || m.gone {
		return nil, fmt.Errorf("ptx: %s: function %s: %w", m.loaded.name, name, device.ErrNotFound)
	}
	return &entry{device: m.device, kernel: k, module: m}, nil
}

func (m *loadedModule) Global(name string) (device.Ptr, int, error) {
	r := m.globals[name]
	if r == nil {
		return 0, 0, fmt.Errorf("ptx: %s: variable %s: %w", m.loaded.name, name, device.ErrNotFound)
	}
	return device.Ptr(r.base), int(r.size), nil
}

func (m *loadedModule) Unload() error {
	return m.device.drained(func() error {
		m.device.unload(m.loaded)
		m.gone = true
		return nil
	})
}

// entry implements device.Function.
type entry struct {
	device *Device
	kernel *kernel
	module *loadedModule
}

func (e *entry) Name() string { return e.kernel.name }

// String names e in errors.
func (e *entry) String() string { return "kernel " + e.kernel.name }
