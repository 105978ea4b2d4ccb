package durable

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
	"siafu/internal/scratch"
)

// Perm is the mode of a file that is not executable, before the umask.
const Perm = 0o666

// bufferBytes is the size of Write's buffer.
const bufferBytes = 256 << 10

// Write writes a file with the content that fill writes. The writer of fill is buffered. After its
// first error it returns that error again. If fill returns a fault, Write returns it unchanged.
func Write(op, path string, fill func(io.Writer) error) error {
	return write(kernel{}, op, path, Perm, fill)
}

// WriteFile writes a file with the content b and the permissions perm before the umask.
func WriteFile(op, path string, b []byte, perm os.FileMode) error {
	return write(kernel{}, op, path, perm, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

func write(d disk, op, path string, perm os.FileMode, fill func(io.Writer) error) error {
	f, err := create(d, op, path, perm)
	if err != nil {
		return err
	}
	defer f.Abort()
	w := bufio.NewWriterSize(f, bufferBytes)
	if err := fill(w); err != nil {
		return about(op, path, err)
	}
	if err := w.Flush(); err != nil {
		return about(op, path, err)
	}
	return f.Commit()
}

// File is a temporary file that Commit renames to its final name. It must end with Commit or
// Abort.
type File struct {
	disk     disk
	op, path string
	file     *os.File
	done     bool
}

// Create begins a file with the final name path. Its folder must exist.
func Create(op, path string) (*File, error) { return create(kernel{}, op, path, Perm) }

func create(d disk, op, path string, perm os.FileMode) (*File, error) {
	file, err := scratch.Create(path, perm)
	if err != nil {
		return nil, about(op, path, err)
	}
	return &File{disk: d, op: op, path: path, file: file}, nil
}

// Temporary returns the path of the file until it is committed, for other processes that write
// to the file.
func (f *File) Temporary() string { return f.file.Name() }

// Write implements io.Writer.
func (f *File) Write(b []byte) (int, error) {
	n, err := f.file.Write(b)
	return n, about(f.op, f.path, err)
}

// WriteAt implements io.WriterAt.
func (f *File) WriteAt(b []byte, offset int64) (int, error) {
	n, err := f.file.WriteAt(b, offset)
	return n, about(f.op, f.path, err)
}

// Truncate sets the length of the file.
func (f *File) Truncate(bytes int64) error { return about(f.op, f.path, f.file.Truncate(bytes)) }

// Commit makes the content durable, then the name. It closes the file last, because closing
// releases the lock on the temporary name. It ignores errors of close, because the sync has
// already reported all failed writes.
func (f *File) Commit() error {
	defer f.Abort()
	if err := f.disk.sync(f.file); err != nil {
		return about(f.op, f.path, err)
	}
	if err := f.disk.rename(f.Temporary(), f.path); err != nil {
		return about(f.op, f.path, err)
	}
	f.close()
	return about(f.op, f.path, syncPath(f.disk, filepath.Dir(f.path)))
}

// Abort removes the file unless it was committed, so that a call can be deferred.
func (f *File) Abort() {
	if f.done {
		return
	}
	_ = os.Remove(f.Temporary()) // if this fails, the next Create removes the file
	f.close()
}

func (f *File) close() {
	f.done = true
	f.file.Close()
}

// OpenInPlace opens a file for writing, with more flags of os.OpenFile, and creates it if it is missing. A symbolic
// link, which may lead to any file, and anything else than a regular file is a fault of kind Usage.
func OpenInPlace(op, path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, Perm)
	regular := err == nil
	if err == nil {
		info, failed := f.Stat()
		regular = failed == nil && info.Mode().IsRegular()
	} else if !errors.Is(err, unix.ELOOP) && !errors.Is(err, unix.ENXIO) {
		return nil, about(op, path, err)
	}
	if !regular {
		f.Close() // nil is allowed
		return nil, fault.New(fault.Usage, op, path, "it is a symbolic link or not a regular file, so siafu does not write it").
			Then("move it away")
	}
	return f, nil
}

// Rename syncs a complete file and then renames it durably.
func Rename(op, from, to string) error { return rename(kernel{}, op, from, to) }

func rename(d disk, op, from, to string) error {
	if err := syncPath(d, from); err != nil {
		return about(op, from, err)
	}
	if err := d.rename(from, to); err != nil {
		return about(op, to, err)
	}
	return about(op, to, syncPath(d, filepath.Dir(to)))
}
