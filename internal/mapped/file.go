package mapped

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
)

// File is a file mapped for reading. Writing to its bytes faults. Reading faults if another
// process has truncated the file, or the disk fails (Fetch, Catch).
type File struct {
	data []byte
}

// OpenFile maps the whole file. Faults have kind Missing or IO.
func OpenFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.System("map", path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fault.System("map", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fault.New(fault.IO, "map", path, "it is not a regular file")
	}
	if info.Size() == 0 {
		return &File{}, nil
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fault.System("map", path, err)
	}
	register(b, path, 0)
	return &File{data: b}, nil
}

// Bytes returns the content of the file, valid until Close.
func (f *File) Bytes() []byte { return f.data }

// Forget removes the pages of part from this process's memory until they are read again. It ignores
// bytes outside the file, and pages that part does not fill.
func (f *File) Forget(part []byte) {
	if len(part) == 0 || len(f.data) == 0 {
		return
	}
	first, page := uintptr(unsafe.Pointer(unsafe.SliceData(f.data))), uintptr(os.Getpagesize())
	lo := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	hi := lo + uintptr(len(part))
	if lo < first || hi > first+uintptr(len(f.data)) {
		return
	}
	lo, hi = (lo-first+page-1)/page*page, (hi-first)/page*page
	if lo < hi {
		_ = unix.Madvise(f.data[lo:hi], unix.MADV_DONTNEED) // fails only for locked pages, which stay
	}
}

// Close unmaps the file; a second call does nothing.
func (f *File) Close() error {
	b := f.data
	f.data = nil
	if b == nil {
		return nil
	}
	unregister(b)
	return unix.Munmap(b)
}

// Cast returns b as elements of type T, without a copy. It panics unless b contains a whole
// number of aligned elements.
func Cast[T Elem](b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(b) == 0 {
		return []T{}
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if len(b)%size != 0 || uintptr(p)%unsafe.Alignof(zero) != 0 {
		panic("mapped: bytes do not hold whole aligned elements")
	}
	return unsafe.Slice((*T)(p), len(b)/size)
}

// Bytes returns s as bytes, without a copy.
func Bytes[T Elem](s []T) []byte {
	if len(s) == 0 {
		return []byte{}
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero)))
}
