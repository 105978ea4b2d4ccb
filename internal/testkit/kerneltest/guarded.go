package kerneltest

import (
	"cmp"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"siafu/internal/mapped"
	"siafu/kernels"
)

// Guarded is an Ops for tests whose matrices Go code cannot read, like those of a device. Pages
// of a matrix are inaccessible, except during methods that have it as an operand. Results are a
// Team's, bit for bit. Direct access faults or panics, and so does a method that receives a host
// matrix. An array ends at a page boundary, followed by a page that is never accessible.
type Guarded struct {
	kernels.Generic
	team  *kernels.Team
	vault *vault
	held  []*region // operands of the current call
}

var _ kernels.Ops = (*Guarded)(nil)

// NewGuarded returns a Guarded that computes with a team. Further ones of the same rank are
// Forks.
func NewGuarded(team *kernels.Team) *Guarded { return newGuarded(team, new(vault)) }

func newGuarded(team *kernels.Team, v *vault) *Guarded {
	d := &Guarded{team: team, vault: v}
	d.Generic = kernels.NewGeneric(d)
	return d
}

// vault manages the memory of a rank. It is safe for concurrent use.
type vault struct {
	mu      sync.Mutex
	regions []*region // by ascending address
}

// region contains the pages of an array: bytes [at, at+size) of an address space, and
// then one page that is never accessible.
//
//	open   number of current calls with this operand; 0: inaccessible
type region struct {
	at, size uintptr
	pages    []byte
	open     int
}

// Remote implements kernels.Ops.
func (d *Guarded) Remote() bool { return true }

// Alloc implements kernels.Ops.
func (d *Guarded) Alloc(a *mapped.Arena, bytes int) unsafe.Pointer {
	if bytes == 0 {
		return nil
	}
	const align = 64
	page := unix.Getpagesize()
	array := (bytes + align - 1) / align * align
	length := (array + page - 1) / page * page
	pages, err := unix.Mmap(-1, 0, length+page, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic("kerneltest: no pages: " + err.Error())
	}
	first := unsafe.Pointer(unsafe.SliceData(pages))
	r := &region{at: uintptr(first), size: uintptr(length), pages: pages}
	d.vault.add(r)
	a.OnFree(func() { d.vault.remove(r) })
	return unsafe.Add(first, length-array)
}

func (v *vault) add(r *region) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.regions = slices.Insert(v.regions, v.place(r.at), r)
}

func (v *vault) remove(r *region) {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.place(r.at)
	v.regions = slices.Delete(v.regions, k, k+1)
	if err := unix.Munmap(r.pages); err != nil {
		panic("kerneltest: " + err.Error())
	}
}

// place returns the index of the first region at or after an address.
func (v *vault) place(at uintptr) int {
	k, _ := slices.BinarySearchFunc(v.regions, at, func(r *region, at uintptr) int { return cmp.Compare(r.at, at) })
	return k
}

// enter opens the region that contains the bytes from at on.
func (v *vault) enter(at uintptr, bytes int) *region {
	v.mu.Lock()
	defer v.mu.Unlock()
	k := v.place(at + 1)
	if k == 0 || at+uintptr(bytes) > v.regions[k-1].at+v.regions[k-1].size {
		panic("kerneltest: an operand outside all arrays")
	}
	r := v.regions[k-1]
	if r.open++; r.open == 1 {
		r.protect(unix.PROT_READ | unix.PROT_WRITE)
	}
	return r
}

func (v *vault) leave(r *region) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.open--; r.open == 0 {
		r.protect(unix.PROT_NONE)
	}
}

func (r *region) protect(access int) {
	if err := unix.Mprotect(r.pages[:r.size], access); err != nil {
		panic("kerneltest: " + err.Error())
	}
}

// shut closes the operands at the end of a call.
func (d *Guarded) shut() {
	for _, r := range d.held {
		d.vault.leave(r)
	}
	d.held = d.held[:0]
}

// open opens an operand for the current call.
func (d *Guarded) open(remote bool, at unsafe.Pointer, bytes int) {
	if at == nil || bytes == 0 {
		return
	}
	if !remote {
		panic("kerneltest: an operand in the host's memory")
	}
	d.held = append(d.held, d.vault.enter(uintptr(at), bytes))
}

// mat opens a matrix for the current call and returns it.
func (d *Guarded) mat(m kernels.Mat) kernels.Mat {
	d.open(m.Remote(), m.Address(), m.Bytes())
	return m.AsHost()
}

// vector opens a vector for the current call and returns it.
func vector[T mapped.Elem](d *Guarded, v kernels.Vector[T]) kernels.Vector[T] {
	d.open(v.Remote(), v.Address(), v.Bytes())
	return v.AsHost()
}

func (d *Guarded) dropout(drop *kernels.Dropout) *kernels.Dropout {
	if drop == nil {
		return nil
	}
	here := *drop
	here.IDs = vector(d, drop.IDs)
	return &here
}

func (d *Guarded) edges(e kernels.Edges) kernels.Edges {
	e.Begin, e.End, e.Cols = vector(d, e.Begin), vector(d, e.End), vector(d, e.Cols)
	e.Weights, e.RowScale, e.ColScale, e.Self = vector(d, e.Weights), vector(d, e.RowScale), vector(d, e.ColScale), vector(d, e.Self)
	e.Features, e.At = vector(d, e.Features), vector(d, e.At)
	return e
}

// sparse opens a sparse operand. It removes the host's copy except the number of rows, because
// kernels must not read the copy.
func (d *Guarded) sparse(x kernels.Sparse) kernels.Sparse {
	x.Offsets, x.Cols, x.Vals = vector(d, x.Offsets), vector(d, x.Cols), vector(d, x.Vals)
	x.Source.Cols, x.Source.Vals = nil, nil
	return x
}

func (d *Guarded) attention(a kernels.Attention) kernels.Attention {
	a.Drop, a.Vector, a.Edge = d.dropout(a.Drop), d.mat(a.Vector), d.mat(a.Edge)
	return a
}

func (d *Guarded) emitted(x kernels.Emitted) kernels.Emitted {
	return kernels.Emitted{X: d.mat(x.X), Scores: d.mat(x.Scores)}
}

func (d *Guarded) attended(b kernels.Attended) kernels.Attended {
	return kernels.Attended{R: d.mat(b.R), LSE: d.mat(b.LSE), Grad: d.mat(b.Grad), Dots: d.mat(b.Dots), Packed: d.mat(b.Packed)}
}
