package mapped

import "golang.org/x/sys/unix"

// huge is the size from which on a mapping asks for huge pages.
const huge = 2 << 20

// mmap maps zeroed memory, with flags beside those that all mappings have.
func mmap(size, flags int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|flags)
	if err == nil && size >= huge && flags == 0 {
		// A hint only: kernels without huge pages refuse it.
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
	return b, err
}

func munmap(b []byte) {
	if unix.Munmap(b) != nil {
		panic("mapped: an array was unmapped twice")
	}
}
