package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
	"siafu/internal/scratch"
)

// disk contains the operations whose order matters. Tests replace them.
type disk interface {
	sync(f *os.File) error // makes the content of a file or the names in a folder durable
	mkdir(path string) error
	rename(from, to string) error
	exchange(a, b string) error // exchanges two names in one step
}

// kernel implements disk by system calls.
type kernel struct{}

func (kernel) sync(f *os.File) error        { return f.Sync() }
func (kernel) mkdir(path string) error      { return os.Mkdir(path, 0o777) }
func (kernel) rename(from, to string) error { return os.Rename(from, to) }
func (kernel) exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// syncPath makes the entries of a folder durable, or the contents of a file. It ignores the
// error of file systems that cannot sync a folder; they make entries durable by other means.
func syncPath(d disk, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = d.sync(f)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

// about returns a fault about path for err, or err itself if it is a fault.
func about(op, path string, err error) error {
	var f *fault.Error
	if err == nil || errors.As(err, &f) {
		return err
	}
	return fault.System(op, path, scratch.Named(path, err))
}
