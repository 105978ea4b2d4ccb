//go:build race

package mapped

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// most is more than any machine's memory, in bytes. Larger requests make the heap panic or end
// the process.
const most = 1 << 40

// UnderRace is true with the race detector. Arrays are then on the garbage-collected heap,
// memory measurements are meaningless, and pools lose their contents.
const UnderRace = true

// reserve allocates zeroed memory on the garbage-collected heap, because the race detector
// checks only heap memory.
func reserve(size int) ([]byte, error) {
	if size > most {
		return nil, unix.ENOMEM
	}
	b := make([]byte, size+align)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % align
	return b[skip : int(skip)+size : int(skip)+size], nil
}

// release leaves the memory to the garbage collector. It is overwritten, so that concurrent
// use is a race, and later use reads NaN.
func release(b []byte) {
	b[0] = 0xff
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// vacate is like release: here the addresses stay anyway.
func vacate(b []byte) { release(b) }
