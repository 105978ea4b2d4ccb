package mapped

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"siafu/internal/fault"
)

// Elem is the constraint on elements of an array.
type Elem interface {
	~uint8 | ~int8 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

const (
	align = 64      // of every array: a cache line, a vector register
	slab  = 1 << 20 // small arrays share mappings of this size
)

// Arena is a set of arrays that are freed together. Its methods may be called
// by several goroutines at once.
type Arena struct {
	*store
	purpose string // of the arrays that it allocates
}

// store is the shared state of an arena and all arenas that its For returns.
type store struct {
	sketch bool
	mu     sync.Mutex
	maps   [][]byte
	rest   []byte // unused end of the newest slab
	total  int64
	shares []Share
	freed  []func() // additional actions of Free
	onDisk spill
}

// Share is the memory of the arrays of one purpose, each rounded up to 64 bytes.
type Share struct {
	Purpose string
	Bytes   int64
}

// NewArena returns an arena without memory.
func NewArena() *Arena { return &Arena{store: new(store)} }

// NewSketch returns an arena that counts the memory of arrays. They have lengths but no
// memory: reading or writing an element faults. A structure made of a sketch's arrays only
// measures its memory; its initialisation must be in functions passed to Fill.
func NewSketch() *Arena { return &Arena{store: &store{sketch: true}} }

// For returns the same arena with a purpose, under which Shares counts its arrays.
func (a *Arena) For(purpose string) *Arena { return &Arena{a.store, purpose} }

// Fill calls write, which initialises arrays of a or creates objects that use them. In a sketch,
// Fill does nothing.
func (a *Arena) Fill(write func()) {
	if !a.sketch {
		write()
	}
}

// failure is the panic value of Fail. If it is not caught, it prints the failure.
type failure struct{ cause *fault.Error }

func (f failure) Error() string { return f.cause.Error() }

// Fail panics with e, which the next deferred Catch turns into an error. Make does so when the
// system has no memory (kind Config), and so does arithmetic on a lost device.
func Fail(e *fault.Error) { panic(failure{e}) }

// Catch converts a failure of Fail or of an allocation into *err, and after debug.SetPanicOnFault(true)
// an access to an unreadable page of a file. Defer it where a piece of work begins that allocates arrays
// or computes.
//
// Design note: arrays are allocated in many places, and none of them can continue after a
// failure. An error return in each place would add a hundred branches that are never taken.
func Catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.cause
	case interface {
		runtime.Error
		Addr() uintptr
	}:
		e := unreadable(r.Addr(), nil)
		if e == nil {
			panic(r)
		}
		*err = e
	default:
		panic(r)
	}
}

// Make allocates a zeroed array of n elements, aligned to 64 bytes. If the system has no memory,
// Make calls Fail.
func Make[T Elem](a *Arena, n int) []T {
	if n < 0 {
		panic("mapped: negative length")
	}
	if n == 0 {
		return []T{}
	}
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	if size/n != int(unsafe.Sizeof(zero)) {
		panic("mapped: length overflows")
	}
	b := a.array(size, align)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// MakeApart allocates n bytes on pages that no other array shares. A device may page-lock these
// pages.
func MakeApart(a *Arena, n int) []byte {
	if n == 0 {
		return []byte{}
	}
	return a.array(n, os.Getpagesize())
}

// array allocates size bytes, rounded up to a multiple of unit.
func (a *Arena) array(size, unit int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	rounded := (size + unit - 1) / unit * unit
	a.count(int64(rounded))
	if a.sketch {
		if size > nowhere-apart {
			Fail(a.exhausted(size, nil))
		}
		return unsafe.Slice((*byte)(unsafe.Add(nil, nowhere+sketched.Add(align)%apart)), size)
	}
	if rounded > slab/4 || unit > align {
		if a.onDisk.has(a.purpose) {
			return a.onDisk.take(rounded)[:size]
		}
		return a.take(rounded)[:size]
	}
	if len(a.rest) < rounded {
		a.rest = a.take(slab)
	}
	b := a.rest[:size:size]
	a.rest = a.rest[rounded:]
	return b
}

// nowhere is the upper bound of addresses of a sketch's arrays, and about their maximum
// length: amd64 and arm64 give a process no memory between nowhere and twice that address
// unless requested by address. The first elements of arrays have different addresses, which
// some code compares, until the arrays made so far have apart bytes.
const (
	nowhere = 1 << 52
	apart   = 1 << 40
)

// sketched counts the arrays of sketches, times align.
var sketched atomic.Uint64

// count adds to the share of a's purpose.
func (a *Arena) count(bytes int64) {
	for i := range a.shares {
		if a.shares[i].Purpose == a.purpose {
			a.shares[i].Bytes += bytes
			return
		}
	}
	a.shares = append(a.shares, Share{a.purpose, bytes})
}

// take maps memory from the system. The caller holds the lock.
func (a *Arena) take(size int) []byte {
	b, err := reserve(size)
	if err != nil {
		Fail(a.exhausted(size, err))
	}
	a.maps = append(a.maps, b)
	a.total += int64(size)
	return b
}

// exhausted returns the error of a failed request for memory.
func (a *Arena) exhausted(size int, err error) *fault.Error {
	e := fault.New(fault.Config, "memory", "", "cannot allocate an array of %.1f MB in addition to the %.1f MB in use",
		float64(size)/1e6, float64(a.total)/1e6).
		Then(`estimate the memory of a run with "siafu plan", use more ranks on more hosts, or raise the limits of this process ` +
			`("ulimit -v", vm.overcommit_memory)`)
	e.Err = err
	return e
}

// Bytes returns the size of the memory that the arena has mapped.
func (a *Arena) Bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total
}

// Used returns the size of its arrays in bytes, each rounded up to 64 bytes.
func (a *Arena) Used() (bytes int64) {
	for _, s := range a.Shares() {
		bytes += s.Bytes
	}
	return bytes
}

// Shares returns the memory of the arrays of each purpose, in the order in which the
// first of each was made.
func (a *Arena) Shares() []Share {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.shares)
}

// OnFree registers f for the next call of Free. f must not use the arena. Use it for other
// memory with the same lifetime.
func (a *Arena) OnFree(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.freed = append(a.freed, f)
}

// keep is set if Free keeps the addresses of arrays.
var keep atomic.Bool

// KeepAddresses makes all later calls of Free in this process return the memory of arrays to the
// system, but not their addresses. Transfers that are never completed may then still access them: they
// read zeros.
func KeepAddresses() { keep.Store(true) }

// Free frees all arrays. The arena may be used again.
func (a *Arena) Free() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.freed {
		f()
	}
	a.freed = nil
	for _, b := range a.maps {
		if keep.Load() {
			vacate(b)
		} else {
			release(b)
		}
	}
	a.maps, a.rest, a.total, a.shares = nil, nil, 0, nil
	a.onDisk.free()
}
