package device

import (
	"errors"
	"unsafe"
)

// Errors that a caller tells apart, with errors.Is.
var (
	// ErrMemory says that a device has no room for an allocation.
	ErrMemory = errors.New("no memory left on the device")
	// ErrNotFound says that a module has no function or variable of that name.
	ErrNotFound = errors.New("not in the module")
)

// Ptr is an address in the memory of a device. 0 is none.
type Ptr uint64

// Device is a GPU, or what stands in for one, with a context of its own.
type Device interface {
	// Properties says what it is. They do not change.
	Properties() Properties
	// Memory returns its free and its total memory in bytes.
	Memory() (free, total int64, err error)
	// Load compiles the text of a PTX module. name stands for it in errors.
	Load(name, text string) (Module, error)
	// Alloc gives N bytes, aligned to 256, of no particular content. Where
	// there is no room the error is an ErrMemory. 0 bytes are an address that must
	// not be read.
	Alloc(bytes int) (Ptr, error)
	// Free gives back memory that Alloc gave, once the work queued so far is done.
	Free(p Ptr) error
	// Pin page-locks b, memory outside of Go's heap that no other pinned memory
	// shares a page with, until Unpin of the same b: BeginIn and BeginOut then go on
	// beside their caller. Copies of other memory do the same and may hold it up.
	// The system may refuse.
	Pin(b []byte) error
	Unpin(b []byte) error
	// NewStream makes a stream, which runs beside all others.
	NewStream() (Stream, error)
	// NewEvent makes an event, which has happened until a stream records it.
	NewEvent() (Event, error)
	// Synchronize waits for all streams.
	Synchronize() error
	// Close ends the device with whatever it still holds. A second Close does
	// nothing.
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
	SharedPerBlock  int    // largest, bytes, static and dynamic together
	Block           [3]int // largest extents of a block
	Grid            [3]int // largest extents of a grid, in blocks
}

// Bandwidth is the bytes that its memory moves a second at most, 0 where that is
// unknown: both edges of its clock carry the bits of its bus.
func (p Properties) Bandwidth() float64 {
	return 2 * float64(p.MemoryClock) * 1000 * float64(p.MemoryBus) / 8
}

// Module is a loaded PTX module.
type Module interface {
	// Function is the entry of that name. No such one is an ErrNotFound.
	Function(name string) (Function, error)
	// Global is the address and size in bytes of a variable of the module.
	Global(name string) (Ptr, int, error)
	// Unload ends the module, whose functions must not be launched any more.
	Unload() error
}

// Function is an entry of a module, which Launch of a stream of the same device
// runs.
type Function interface {
	Name() string
}

// Stream is a queue of work. Work on it runs in order.
type Stream interface {
	// CopyIn sets memory of the device to src, which it has read when it returns.
	CopyIn(dst Ptr, src []byte) error
	// CopyOut waits for the work queued so far and sets dst to memory of the device.
	CopyOut(dst []byte, src Ptr) error
	// BeginIn is CopyIn without the wait: src must stay as it is until the copy is
	// done, which an event says that is recorded after it.
	BeginIn(dst Ptr, src []byte) error
	// BeginOut is CopyOut without the wait: dst must be neither read nor written
	// until the copy is done.
	BeginOut(dst []byte, src Ptr) error
	// Copy sets bytes of the device to others, which they must not overlap.
	Copy(dst, src Ptr, bytes int) error
	// Set sets N bytes of the device to b.
	Set(dst Ptr, b byte, bytes int) error
	// Launch runs a grid of f. args, which it has read when it returns, are the
	// parameters of f in order.
	Launch(f Function, l Launch, args *Args) error
	// Record makes e happen when the work queued so far is done.
	Record(e Event) error
	// Wait has the stream wait for the last record of e before it goes on.
	Wait(e Event) error
	// Synchronize waits for the work queued so far and says what failed.
	Synchronize() error
	// Close ends the stream once its work is done.
	Close() error
}

// Launch is the shape of a grid. An extent of 0 counts as 1.
type Launch struct {
	Grid   [3]int // in blocks
	Block  [3]int // in threads
	Shared int    // bytes of dynamic shared memory a block
}

// Event is a moment in the work of a stream.
type Event interface {
	// Done reports whether it has happened.
	Done() (bool, error)
	// Synchronize waits until it has.
	Synchronize() error
	// Since is the milliseconds that lie between start and it. Both have happened.
	Since(start Event) (float64, error)
	// Close ends the event.
	Close() error
}
