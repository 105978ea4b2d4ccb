package cuda

import (
	"errors"
	"fmt"
	"sync"

	"siafu/cuda/device"
	compiled "siafu/cuda/kernels"
	"siafu/graph/fault"
	"siafu/graph/mapped"
	"siafu/kernels"
)

// Ops is a kernels.Ops on a device.
//
// Design note: all Ops of a rank queue their work on one stream. What is called
// later, on any of them, must find done what was called before; with streams of
// their own each call would first have its stream wait for all others.
type Ops struct {
	*rank
	*workspace
	own    *workspace  // which a Borrow replaces
	args   device.Args // of a launch
	closed bool
}

var _ kernels.Ops = (*Ops)(nil)

// rank is what all Ops of a rank share.
type rank struct {
	device    device.Device
	stream    device.Stream
	modules   []device.Module
	functions map[string]device.Function
	blas      device.BLAS // nil: dense products are the own kernels'

	mu    sync.Mutex
	err   *fault.Error // the first of the device; nil: it is well
	plans map[matrix]*plan
	users int // Ops that are not closed
}

// workspace is what kernels of one Ops need while they run. Its memory on the device
// grows as needed and is kept.
type workspace struct {
	at     device.Ptr
	size   int
	losses []float64 // what came of a loss and of counts
	counts []int64
}

// Products is whose dense products of float32 an Ops takes.
type Products string

const (
	Auto   Products = "auto"   // cuBLAS's where the device has it, else the own ones
	CuBLAS Products = "cublas" // cuBLAS's, or none at all
	Own    Products = "own"    // those of package cuda/kernels
)

// New is the first Ops of a rank on d; others are its Forks. d stays the caller's,
// who closes it when all Ops are closed and all their arenas freed.
func New(d device.Device, p Products) (*Ops, error) {
	r := &rank{device: d, functions: map[string]device.Function{}, plans: map[matrix]*plan{}, users: 1}
	err := r.load()
	if err == nil {
		err = r.open(p)
	}
	if err != nil {
		r.unload()
		return nil, failed(err)
	}
	return r.ops(), nil
}

// open finds the library of dense products that p asks for.
func (r *rank) open(p Products) (err error) {
	if p == Own {
		return nil
	}
	d, ok := r.device.(device.Libraries)
	if !ok {
		err = device.ErrLibrary
	} else if r.blas, err = d.BLAS(r.stream); err == nil {
		return nil
	}
	r.blas = nil
	if errors.Is(err, device.ErrLibrary) {
		if p == CuBLAS {
			return err
		}
		return nil
	}
	return fmt.Errorf("%w (--cuda-blas own does without it)", err)
}

// load makes the stream and the functions.
func (r *rank) load() (err error) {
	if r.stream, err = r.device.NewStream(); err != nil {
		return err
	}
	for _, m := range compiled.Modules() {
		module, err := r.device.Load(m.Name, m.Text)
		if err != nil {
			return err
		}
		r.modules = append(r.modules, module)
		for _, name := range m.Entries() {
			if r.functions[name], err = module.Function(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// unload gives back what load and plans took. What fails now concerns nobody.
func (r *rank) unload() {
	for m := range r.plans {
		r.forget(m)
	}
	for _, m := range r.modules {
		_ = m.Unload()
	}
	if r.blas != nil {
		_ = r.blas.Close()
	}
	if r.stream != nil {
		_ = r.stream.Close()
	}
}

// Fork implements kernels.Ops.
func (o *Ops) Fork() kernels.Ops {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.users++
	return o.rank.ops()
}

func (r *rank) ops() *Ops {
	w := new(workspace)
	return &Ops{rank: r, workspace: w, own: w}
}

// Borrow implements kernels.Ops.
func (o *Ops) Borrow(owner kernels.Ops) {
	other, ok := owner.(*Ops)
	if !ok || other.rank != o.rank {
		panic("cuda: Ops of different ranks share a workspace")
	}
	o.workspace = other.workspace
}

// Intervals implements kernels.Ops: a kernel on all vertices keeps a device busier
// than many on a few.
func (o *Ops) Intervals(int) int { return 1 }

// Kernel implements kernels.Ops.
func (o *Ops) Kernel() string {
	name := "cuda " + o.device.Properties().Name
	if o.blas != nil {
		name += " with " + o.blas.Name()
	}
	return name
}

// Stream is the stream that the rank's work is queued on, for those who measure it.
func (o *Ops) Stream() device.Stream { return o.stream }

// Close implements kernels.Ops.
func (o *Ops) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	o.own.free(o.device)
	if o.users--; o.users == 0 {
		o.unload()
	}
}

// check ends the piece of work under way where the device has failed, now or before.
func (r *rank) check(err error) {
	if first := r.first(err); first != nil {
		mapped.Fail(first)
	}
}

// first is the first error of the device, which may be err.
func (r *rank) first(err error) *fault.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && err != nil {
		r.err = failed(err)
	}
	return r.err
}

// failed is what a rank is told of an error of its device.
func failed(err error) *fault.Error {
	e := fault.New(fault.Runtime, "cuda", "", "the device failed")
	e.Err = err
	switch {
	case errors.Is(err, device.ErrMemory):
		e.Kind, e.Detail = fault.Config, "the device has no room for this run"
		return e.Then(`use more ranks on more devices, or --tensor cpu`)
	case errors.Is(err, device.ErrLibrary):
		e.Kind, e.Detail = fault.Config, "there is no cuBLAS of CUDA 11.5 or later here"
		return e.Then(`install it and name its folder in LD_LIBRARY_PATH, or compute with own products: --cuda-blas own`)
	}
	return e
}

// fit panics unless shapes do.
func fit(ok bool) {
	if !ok {
		panic("cuda: matrices whose shapes do not fit")
	}
}

// alike tells whether matrices have the same shape.
func alike(a, b kernels.Mat) bool { return a.Rows == b.Rows && a.Cols == b.Cols }
