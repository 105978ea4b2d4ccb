//go:build !race

package mapped

import "golang.org/x/sys/unix"

// UnderRace tells that the race detector is on: arrays are on the garbage-collected
// heap, measurements of memory mean nothing, and pools forget what they hold.
const UnderRace = false

// huge is the size from which on a mapping asks for huge pages.
const huge = 2 << 20

// reserve maps zeroed memory.
func reserve(size int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil && size >= huge {
		// A hint only: kernels without huge pages refuse it.
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
	return b, err
}

// release gives it back.
func release(b []byte) {
	if unix.Munmap(b) != nil {
		panic("mapped: an array was unmapped twice")
	}
}
