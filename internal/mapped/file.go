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
	file *os.File
}

// OpenFile maps the whole file. Faults have kind Missing or IO.
func OpenFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.System("map", path, err)
	}
	m, err := mapWhole(f, path)
	if err != nil || m.data == nil {
		f.Close()
	}
	return m, err
}

func mapWhole(f *os.File, path string) (*File, error) {
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
	register(b, f, path, 0, unix.PROT_READ)
	return &File{data: b, file: f}, nil
}

// Bytes returns the content of the file, valid until Close.
func (f *File) Bytes() []byte { return f.data }

// Forget is Release for a part of the file. It ignores other memory.
func (f *File) Forget(part []byte) { Release(part) }

// Close unmaps the file; a second call does nothing.
func (f *File) Close() error {
	b := f.data
	f.data = nil
	if b == nil {
		return nil
	}
	unregister(b)
	f.file.Close()
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
