//go:build !race

package mapped

import "golang.org/x/sys/unix"

// UnderRace is true with the race detector. Arrays are then on the garbage-collected heap,
// memory measurements are meaningless, and pools lose their contents.
const UnderRace = false

// huge is the minimum size in bytes of a mapping with huge pages.
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

// release unmaps memory from reserve.
func release(b []byte) {
	if unix.Munmap(b) != nil {
		panic("mapped: an array was unmapped twice")
	}
}

// vacate returns the memory of b to the system. Its addresses then refer to zeros.
func vacate(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) } // it fails only for locked memory, which stays
