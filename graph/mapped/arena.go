package mapped

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Elem is what an array may hold.
type Elem interface {
	~uint8 | ~int8 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

const (
	align = 64      // of every array: a cache line, a vector register
	slab  = 1 << 20 // small arrays share mappings of this size
	huge  = 2 << 20 // from here on a mapping asks for huge pages
)

// Arena is a set of arrays that are freed together. Its methods may be called
// by several goroutines at once.
type Arena struct {
	mu    sync.Mutex
	maps  [][]byte
	rest  []byte // unused end of the newest slab
	total int64
	used  int64
}

// NewArena returns an arena without memory.
func NewArena() *Arena { return &Arena{} }

// Make gives a zeroed array of n elements, aligned to 64 bytes. It panics when
// the system has no memory left: an array of ours is asked for at start, and
// nothing sensible can follow.
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
	b := a.bytes(size)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

func (a *Arena) bytes(size int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	rounded := (size + align - 1) / align * align
	a.used += int64(rounded)
	if rounded > slab/4 {
		return a.mmap(rounded)[:size]
	}
	if len(a.rest) < rounded {
		a.rest = a.mmap(slab)
	}
	b := a.rest[:size:size]
	a.rest = a.rest[rounded:]
	return b
}

// mmap is called with the lock held.
func (a *Arena) mmap(size int) []byte {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic("mapped: out of memory")
	}
	if size >= huge {
		// A hint only: kernels without huge pages refuse it.
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
	a.maps = append(a.maps, b)
	a.total += int64(size)
	return b
}

// Bytes is how much memory the arena has mapped.
func (a *Arena) Bytes() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.total
}

// Used is how much of that its arrays take, each rounded up to 64 bytes.
func (a *Arena) Used() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Free gives all arrays back. The arena may be used again afterwards.
func (a *Arena) Free() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.maps {
		if unix.Munmap(b) != nil {
			panic("mapped: an array was unmapped twice")
		}
	}
	a.maps, a.rest, a.total, a.used = nil, nil, 0, 0
}
