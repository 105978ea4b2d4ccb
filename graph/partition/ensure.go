package partition

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"siafu/graph/fault"
)

// Ensure is Run, unless parts/P is there and serves o: then it returns no report. Where
// another process is dividing the dataset it waits, and uses what that one has made.
// begins gets the options that are settled on, before the work.
func Ensure(dir string, o Options, begins func(Options)) (*Report, error) {
	m, err := made(dir, o.Parts)
	if err != nil || m != nil && m.Serves(o) {
		return nil, err
	}
	defer lock(dir)()
	if m, err = made(dir, o.Parts); err != nil || m != nil && m.Serves(o) {
		return nil, err
	}
	o = m.Complete(o)
	begins(o)
	return divide(dir, o)
}

// made is Find, and nil where nothing is there.
func made(dir string, parts int) (*Meta, error) {
	m, err := Find(dir, parts)
	if fault.KindOf(err) == fault.Missing || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return m, err
}

// lock waits until no other process divides the dataset, and keeps others from it. It
// is a lock on the dataset's folder, which leaves nothing there and ends with the process.
// File systems that cannot lock a folder (NFS) go without: then both divide it, and the
// later one replaces what the other has made.
func lock(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {} // whoever reads the dataset says so
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	return func() { f.Close() }
}
