package scratch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// abandoned is how long a folder must not have changed where nobody can be
// asked for it.
const abandoned = 24 * time.Hour

// infix stands between the name that a folder will take and its number.
const infix = ".tmp-"

// Folder is a hidden folder that this process fills.
type Folder struct {
	Path string
	lock *os.File
}

// Make makes a folder beside final, whose parent exists, and removes those for
// the same name that dead processes have left.
func Make(final string) (*Folder, error) {
	parent, name := filepath.Dir(final), "."+filepath.Base(final)+infix
	sweep(parent, name, final)
	for {
		path, err := os.MkdirTemp(parent, name+"*")
		if err != nil {
			return nil, err
		}
		lock, err := hold(path)
		if err == nil {
			return &Folder{path, lock}, nil
		}
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) {
			_ = os.RemoveAll(path)
			return nil, err
		}
		// Another process took it for abandoned before it was locked.
	}
}

// Close removes what is under the folder's path: the folder, or what has changed
// places with it.
func (f *Folder) Close() {
	_ = os.RemoveAll(f.Path) // the next Make tries again
	if f.lock != nil {
		_ = f.lock.Close()
	}
}

// hold locks a folder that exists. The file is nil where there are no locks.
func hold(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		f.Close()
		return nil, err
	case err != nil:
		f.Close()
		return nil, nil
	}
	if !current(f, path) {
		f.Close()
		return nil, os.ErrNotExist
	}
	return f, nil
}

// current tells whether the path still names the folder that is locked.
func current(f *os.File, path string) bool {
	locked, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named)
}

// sweep removes abandoned folders. What cannot be removed stays: it is in
// nobody's way.
func sweep(parent, prefix, final string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	_, err = os.Stat(final)
	exists := err == nil
	for _, e := range entries {
		// One that has stepped aside for a new folder may be the only one there is.
		if !strings.HasPrefix(e.Name(), prefix) || strings.HasSuffix(e.Name(), ".old") && !exists {
			continue
		}
		if path := filepath.Join(parent, e.Name()); free(path) {
			_ = os.RemoveAll(path)
		}
	}
}

// free tells whether nobody fills a folder any more.
func free(path string) bool {
	lock, err := hold(path)
	if err != nil {
		return false
	}
	if lock != nil {
		lock.Close()
		return true
	}
	info, err := os.Stat(path)
	return err == nil && time.Since(info.ModTime()) > abandoned
}
