package cuda

import (
	"sync"

	"siafu/cuda/device"
)

// Sketch is a device that counts memory without having any. An Ops on it requests the memory
// that it would request on a real device. For plans of sparse matrices it requests the maximum,
// because the distribution of edges over rows is unknown.
type Sketch struct {
	mu        sync.Mutex
	next      device.Ptr
	sizes     map[device.Ptr]int64
	now, most int64
	counted   map[device.Ptr]bool // columns of edges whose pieces have been counted
}

var _ device.Device = (*Sketch)(nil)

// NewSketch returns an empty device.
func NewSketch() *Sketch {
	return &Sketch{next: sketchFrom, sizes: map[device.Ptr]int64{}, counted: map[device.Ptr]bool{}}
}

// Sizes are rounded up to sketchUnit, as a driver does. Addresses start at sketchFrom, where no
// process has memory unless it requests that address, so that Go's memory is elsewhere.
const (
	sketchUnit = 512
	sketchFrom = 1 << 51
)

// Most returns the peak number of bytes.
func (s *Sketch) Most() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Alloc implements device.Device.
func (s *Sketch) Alloc(bytes int) (device.Ptr, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, size := s.next, (int64(bytes)+sketchUnit-1)/sketchUnit*sketchUnit
	s.next += device.Ptr(max(size, sketchUnit))
	s.sizes[p] = size
	s.now += size
	s.most = max(s.most, s.now)
	return p, nil
}

// Free implements device.Device.
func (s *Sketch) Free(p device.Ptr) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now -= s.sizes[p]
	delete(s.sizes, p)
	return nil
}

// first reports whether this is its first call for edges with these columns.
func (s *Sketch) first(cols device.Ptr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.counted[cols]
	s.counted[cols] = true
	return !before
}

// Properties, Memory and Load, NewStream and NewEvent, Synchronize and Close implement
// device.Device.
func (s *Sketch) Properties() device.Properties              { return device.Properties{Name: "sketch"} }
func (s *Sketch) Memory() (free, total int64, err error)     { return 0, 0, nil }
func (s *Sketch) Load(string, string) (device.Module, error) { return nothing{}, nil }
func (s *Sketch) NewStream() (device.Stream, error)          { return nothing{}, nil }
func (s *Sketch) NewEvent() (device.Event, error)            { return nothing{}, nil }
func (s *Sketch) Pin([]byte) error                           { return nil }
func (s *Sketch) Unpin([]byte) error                         { return nil }
func (s *Sketch) Synchronize() error                         { return nil }
func (s *Sketch) Close() error                               { return nil }

// nothing is a module, a function, a stream and an event of a Sketch.
type nothing struct{}

func (nothing) Name() string                                              { return "" }
func (n nothing) Function(string) (device.Function, error)                { return n, nil }
func (nothing) Global(string) (device.Ptr, int, error)                    { return 0, 0, nil }
func (nothing) Unload() error                                             { return nil }
func (nothing) CopyIn(device.Ptr, []byte) error                           { return nil }
func (nothing) CopyOut([]byte, device.Ptr) error                          { return nil }
func (nothing) BeginIn(device.Ptr, []byte) error                          { return nil }
func (nothing) BeginOut([]byte, device.Ptr) error                         { return nil }
func (nothing) Copy(dst, src device.Ptr, bytes int) error                 { return nil }
func (nothing) Set(device.Ptr, byte, int) error                           { return nil }
func (nothing) Launch(device.Function, device.Launch, *device.Args) error { return nil }
func (nothing) Record(device.Event) error                                 { return nil }
func (nothing) Wait(device.Event) error                                   { return nil }
func (nothing) Synchronize() error                                        { return nil }
func (nothing) Close() error                                              { return nil }
func (nothing) Done() (bool, error)                                       { return true, nil }
func (nothing) Since(device.Event) (float64, error)                       { return 0, nil }
