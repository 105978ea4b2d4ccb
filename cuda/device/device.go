package device

import (
	"errors"
	"math"
	"unsafe"
)

// Errors that callers distinguish with errors.Is.
var (
	// ErrMemory means that a device has no memory for an allocation.
	ErrMemory = errors.New("no memory left on the device")
	// ErrNotFound means that a module has no function or variable of that name.
	ErrNotFound = errors.New("not in the module")
)

// Ptr is an address in the memory of a device. 0 is none.
type Ptr uint64

// Device is a GPU, or a stand-in for one, with its own context.
type Device interface {
	// Properties returns its properties, which do not change.
	Properties() Properties
	// Memory returns its free and its total memory in bytes.
	Memory() (free, total int64, err error)
	// Load compiles the text of a PTX module. Errors contain name.
	Load(name, text string) (Module, error)
	// Alloc returns bytes aligned to 256, with undefined content. Without memory the error is
	// an ErrMemory. For 0 bytes it returns an address that must not be read.
	Alloc(bytes int) (Ptr, error)
	// Free frees memory from Alloc after the work queued so far.
	Free(p Ptr) error
	// Pin page-locks b, memory outside of Go's heap that shares no page with other pinned
	// memory, until Unpin of the same b: BeginIn and BeginOut are then asynchronous. Copies of
	// other memory are allowed, but may block the caller. The system may refuse.
	Pin(b []byte) error
	Unpin(b []byte) error
	// NewStream makes a stream, which runs concurrently with all others.
	NewStream() (Stream, error)
	// NewEvent makes an event, which has happened until a stream records it.
	NewEvent() (Event, error)
	// Synchronize waits for all streams.
	Synchronize() error
	// Close ends the device and frees its resources. A second Close does nothing.
	Close() error
}

// Threaded is a Device whose memory C libraries may use. call, of C's type int
// (*)(void *), with context lets the thread that makes it do so, until Close.
type Threaded interface {
	Device
	Thread() (call, context unsafe.Pointer)
}

// Properties describe a device.
type Properties struct {
	Name            string
	Driver          string // version of the driver, for people
	Major, Minor    int    // compute capability
	Multiprocessors int
	MemoryClock     int // kHz; 0: unknown
	MemoryBus       int // bits; 0: unknown
	WarpSize        int
	ThreadsPerBlock int    // largest
	SharedPerBlock  int    // maximum, bytes, static plus dynamic
	Block           [3]int // largest extents of a block
	Grid            [3]int // largest extents of a grid, in blocks
}

// Bandwidth returns the peak memory bandwidth in bytes per second, 0 if unknown: both clock
// edges transfer the width of the bus.
func (p Properties) Bandwidth() float64 {
	return 2 * float64(p.MemoryClock) * 1000 * float64(p.MemoryBus) / 8
}

// Module is a loaded PTX module.
type Module interface {
	// Function returns the entry of that name, or an ErrNotFound.
	Function(name string) (Function, error)
	// Global returns the address and size in bytes of a variable of the module.
	Global(name string) (Ptr, int, error)
	// Unload ends the module. Its functions must not be launched any more.
	Unload() error
}

// Function is an entry of a module, which Launch of a stream of the same device
// runs.
type Function interface {
	Name() string
}

// Stream is a queue of work. Work on it runs in order.
type Stream interface {
	// CopyIn sets memory of the device to src. src may change when it returns.
	CopyIn(dst Ptr, src []byte) error
	// CopyOut waits for the work queued so far and sets dst to memory of the device.
	CopyOut(dst []byte, src Ptr) error
	// BeginIn copies like CopyIn, without the wait: src must not change until the copy is done, which
	// an event recorded after it shows.
	BeginIn(dst Ptr, src []byte) error
	// BeginOut copies like CopyOut, without the wait: dst must be neither read nor written
	// until the copy is done.
	BeginOut(dst []byte, src Ptr) error
	// Copy copies bytes within the device. They must not overlap.
	Copy(dst, src Ptr, bytes int) error
	// Set sets bytes of the device to b.
	Set(dst Ptr, b byte, bytes int) error
	// Launch runs a grid of f with the parameters args. args may change when it returns.
	Launch(f Function, l Launch, args *Args) error
	// Record makes e happen when the work queued so far is done.
	Record(e Event) error
	// Wait makes the stream wait for the last record of e.
	Wait(e Event) error
	// Synchronize waits for the work queued so far and returns its error.
	Synchronize() error
	// Close ends the stream once its work is done.
	Close() error
}

// Launch is the shape of a grid. An extent of 0 counts as 1.
type Launch struct {
	Grid   [3]int // in blocks
	Block  [3]int // in threads
	Shared int    // bytes of dynamic shared memory per block
}

// Extents returns the extents of the grid and of a block, with 0 replaced by 1. ok is false if one
// does not fit into an int of C.
func (l Launch) Extents() (grid, block [3]uint32, ok bool) {
	for i := range 3 {
		if min(l.Grid[i], l.Block[i]) < 0 || max(l.Grid[i], l.Block[i]) > math.MaxInt32 {
			return grid, block, false
		}
		grid[i], block[i] = uint32(max(l.Grid[i], 1)), uint32(max(l.Block[i], 1))
	}
	return grid, block, l.Shared >= 0
}

// Waited returns err, or the error of the work queued on s.
func Waited(s Stream, err error) error {
	if err != nil {
		return err
	}
	return s.Synchronize()
}

// Event is a moment in the work of a stream.
type Event interface {
	// Done reports whether it has happened.
	Done() (bool, error)
	// Synchronize waits until it has happened.
	Synchronize() error
	// Since returns the milliseconds from start to this event. Both must have happened.
	Since(start Event) (float64, error)
	// Close ends the event.
	Close() error
}
