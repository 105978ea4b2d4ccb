//go:build race

package mapped

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// most is more than any machine has. The heap panics on, or ends the process for, larger
// requests.
const most = 1 << 40

// UnderRace tells that the race detector is on: arrays are on the garbage-collected
// heap, measurements of memory mean nothing, and pools forget what they hold.
const UnderRace = true

// reserve takes zeroed memory from the garbage-collected heap: the race
// detector watches that alone.
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
