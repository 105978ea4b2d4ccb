package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"siafu/cuda/device"
	"siafu/internal/fault"
	"siafu/internal/mapped"
	"siafu/kernels"
)

// Ops is a kernels.Ops on a device.
//
// Design note: all Ops of a rank queue their work on one stream, because every call must see
// the results of earlier ones on any Ops. With separate streams each call would have to wait
// for all others. Only copies of rows for other ranks have their own streams (copier).
type Ops struct {
	*rank
	*lossResults
	kernels.Generic
	args   device.Args // of a launch
	closed bool
}

var _ kernels.Ops = (*Ops)(nil)

// rank is the shared state of a rank's Ops, which queue their work on one stream.
type rank struct {
	*program
	stream device.Stream // of kernels
	copies copyStreams
	blas   device.BLAS // nil: dense products use siafu's kernels

	mu     sync.Mutex
	err    *fault.Error // the first error of the device
	plans  map[matrix]*plan
	users  int // open Ops
	say    func(line string)
	warned bool // that the system pins no memory

	workspace workspace
}

// program has the modules loaded on a device, shared by the ranks on it.
type program struct {
	device    device.Device
	modules   []device.Module
	functions map[string]device.Function
	users     atomic.Int64 // ranks
	products  Products
	sketch    *Sketch // the device, if it is a sketch
}

// workspace is memory that grows as needed. Only one Ops at a time queues kernels that pass
// data through it.
type workspace struct {
	mu   sync.Mutex
	at   device.Ptr
	size int
}

// lossResults has the results of a loss and of counts, on the host.
type lossResults struct {
	losses []float64
	counts []int64
}

// Products selects the dense products of float32.
type Products string

const (
	Auto   Products = "auto"   // cuBLAS if available, else siafu's kernels
	CuBLAS Products = "cublas" // cuBLAS, or an error
	Own    Products = "own"    // in folder kernels
)

// New returns the first Ops of a rank on d; others are its Forks. The caller owns d, and
// closes it after all Ops are closed and all their arenas freed.
func New(d device.Device, from Products) (*Ops, error) {
	p := &program{device: d, products: from, functions: map[string]device.Function{}}
	p.sketch, _ = d.(*Sketch)
	if err := p.load(); err != nil {
		p.unload()
		return nil, failed(err)
	}
	return p.begin()
}

// Queues returns n Ops on d with the same memory and separate streams. Calls on different Ops are
// not ordered until one of them waits.
func Queues(d device.Device, p Products, n int) (queues []kernels.Ops, err error) {
	first, err := New(d, p)
	for o := first; err == nil; o, err = first.program.begin() {
		if queues = append(queues, o); len(queues) == n {
			return queues, nil
		}
	}
	for _, o := range queues {
		o.Close()
	}
	return nil, err
}

// begin returns the first Ops of another stream. On an error the program is unloaded if it has
// no other user.
func (p *program) begin() (*Ops, error) {
	p.users.Add(1)
	stream, err := p.device.NewStream()
	if err != nil {
		p.end()
		return nil, failed(err)
	}
	r := &rank{program: p, stream: stream, plans: map[matrix]*plan{}, users: 1}
	if err := r.open(p.products); err != nil {
		r.end()
		return nil, failed(err)
	}
	return r.ops(), nil
}

// open opens the library of dense products that p requests.
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
	return fmt.Errorf("%w (--tensor blas=own does not need it)", err)
}

// end ends one use of the program.
func (p *program) end() {
	if p.users.Add(-1) == 0 {
		p.unload()
	}
}

// load loads the functions.
func (p *program) load() error {
	for _, m := range ptxModules() {
		module, err := p.device.Load(m.Name, m.Text)
		if err != nil {
			return err
		}
		p.modules = append(p.modules, module)
		for _, name := range m.Entries {
			if p.functions[name], err = module.Function(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// unload frees the resources of load. It ignores errors.
func (p *program) unload() {
	for _, m := range p.modules {
		_ = m.Unload()
	}
}

// end frees the rank's resources. It ignores errors.
func (r *rank) end() {
	for m := range r.plans {
		r.forget(m)
	}
	if r.workspace.size > 0 {
		_ = r.device.Free(r.workspace.at)
	}
	if r.blas != nil {
		_ = r.blas.Close()
	}
	for _, s := range []device.Stream{r.copies.down, r.copies.up, r.stream} {
		if s != nil {
			_ = s.Close()
		}
	}
	r.program.end()
}

// Tell passes a notice for users about the rank's device to say, once.
func (o *Ops) Tell(say func(line string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.say = say
}

// warnPageable warns, once, that host memory is not pinned.
func (r *rank) warnPageable(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.warned && r.say != nil {
		r.say(fmt.Sprintf("host memory is not page-locked, so transfers to and from the GPU are slower: %v", err))
	}
	r.warned = true
}

// Fork implements kernels.Ops.
func (o *Ops) Fork() kernels.Ops {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rank.users++
	return o.rank.ops()
}

func (r *rank) ops() *Ops {
	o := &Ops{rank: r, lossResults: new(lossResults)}
	o.Generic = kernels.NewGeneric(o)
	return o
}

// Has implements kernels.Ops.
func (o *Ops) Has(f kernels.Feature) bool { return kernels.RowCoding.Includes(f) }

// Borrow implements kernels.Ops.
func (o *Ops) Borrow(owner kernels.Ops) {
	other, ok := owner.(*Ops)
	if !ok || other.rank != o.rank {
		panic("cuda: Ops of different ranks share a workspace")
	}
	o.lossResults = other.lossResults
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

// Stream returns the stream that the rank's work is queued on, for measurements.
func (o *Ops) Stream() device.Stream { return o.stream }

// Close implements kernels.Ops.
func (o *Ops) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	if o.rank.users--; o.rank.users == 0 {
		o.rank.end()
	}
}

// check ends the current piece of work if the device has failed, now or before.
func (r *rank) check(err error) {
	if first := r.first(err); first != nil {
		mapped.Fail(first)
	}
}

// first returns the first error of the device, which may be err.
func (r *rank) first(err error) *fault.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && err != nil {
		r.err = failed(err)
	}
	return r.err
}

// failed returns the fault that reports an error of the device to its rank.
func failed(err error) *fault.Error {
	e := fault.New(fault.Runtime, "cuda", "", "the device failed")
	e.Err = err
	switch {
	case errors.Is(err, device.ErrMemory):
		e.Kind, e.Detail = fault.Config, "the device has too little memory for this run"
		return e.Then(`use more ranks on more devices, or --tensor cpu`)
	case errors.Is(err, device.ErrLibrary):
		e.Kind, e.Detail = fault.Config, "no cuBLAS of CUDA 11.5 or later is installed"
		return e.Then(`install it and name its folder in LD_LIBRARY_PATH, or compute with own products: --tensor blas=own`)
	}
	return e
}

// mustFit panics unless shapes fit.
func mustFit(ok bool) {
	if !ok {
		panic("cuda: matrices whose shapes do not fit")
	}
}

// isSameShape reports whether matrices have the same shape.
func isSameShape(a, b kernels.Mat) bool { return a.Rows == b.Rows && a.Cols == b.Cols }
