package disk

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
)

// block is the alignment of direct reads and writes: a multiple of the sectors of all common disks.
const block = 4096

// File is an open file. Its methods may be called by several goroutines at once.
type File struct {
	file   *os.File
	path   string
	size   int64
	direct bool
}

// Open opens a file for reading. Faults have kind Missing or IO.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.System("read", path, err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fault.System("read", path, err)
	}
	return (&File{file: f, path: path, size: info.Size()}).bypass(), nil
}

// Create creates a file of the given size without a name in the folder dir, for reading and writing. The
// system deletes it when it is closed or the process ends, however it ends. Faults have kind Missing or
// IO.
func Create(dir string, size int64) (*File, error) {
	f, err := Unnamed(dir)
	if err != nil {
		return nil, fault.System("create a file", dir, err)
	}
	if err := reserve(f, size); err != nil {
		f.Close()
		return nil, fault.System("reserve disk space", dir, err)
	}
	return (&File{file: f, path: dir, size: size}).bypass(), nil
}

// reserve reserves the blocks of a file.
func reserve(f *os.File, size int64) (err error) {
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Fallocate(int(f.Fd()), 0, 0, size)
	}
	return err
}

// Unnamed creates a file without a name. Where the file system cannot, it removes the name.
func Unnamed(dir string) (*os.File, error) {
	if f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600); err == nil {
		return f, nil
	}
	f, err := os.CreateTemp(dir, ".siafu-scratch-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// bypass opens the file again for direct input and output, if that is possible.
func (f *File) bypass() *File {
	if g := Direct(f.file); g != nil {
		f.file.Close()
		f.file, f.direct = g, true
	}
	return f
}

// Direct opens the file of f again, with the same access, for direct input and output: offsets, lengths and
// addresses must be multiples of 4,096. It returns nil if the file system has none.
func Direct(f *os.File) *os.File {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return nil
	}
	g, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), flags&unix.O_ACCMODE|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	// Some file systems accept the flag and refuse the first read.
	b, free := buffer(block)
	defer free()
	if _, err := unix.Pread(int(g.Fd()), b, 0); err != nil {
		g.Close()
		return nil
	}
	return g
}

// Size returns the size in bytes.
func (f *File) Size() int64 { return f.size }

// Direct reports whether reads and writes bypass the page cache.
func (f *File) Direct() bool { return f.direct }

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Forget removes the file's pages from the page cache, as far as other processes do not use them.
func (f *File) Forget() error {
	if err := f.file.Sync(); err != nil && f.writable() {
		return fault.System("write", f.path, err)
	}
	_ = unix.Fadvise(int(f.file.Fd()), 0, 0, unix.FADV_DONTNEED) // a hint only
	return nil
}

func (f *File) writable() bool {
	flags, err := unix.FcntlInt(f.file.Fd(), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}
