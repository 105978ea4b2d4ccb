package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"siafu/internal/fault"
	"siafu/internal/scratch"
)

// Folder is a hidden folder that Commit renames to its final name. Close must follow.
type Folder struct {
	*scratch.Folder
	op, final string
}

// NewFolder begins the folder that final will name, and makes those above it.
func NewFolder(op, final string) (*Folder, error) {
	if err := MkdirAll(op, filepath.Dir(final)); err != nil {
		return nil, err
	}
	f, err := scratch.New(final, 0o777, nil)
	if err != nil {
		return nil, about(op, final, err)
	}
	return &Folder{f, op, final}, nil
}

// Commit calls Replace. Close then removes the previous folder.
func (f *Folder) Commit() error { return Replace(f.op, f.Path, f.final, f.Path+".old") }

// Replace puts the folder tmp, whose files are durable, in the place of final.
// Where final exists the two change places in one step, so that it is whole at
// any moment, and the older one is left at tmp. File systems that cannot do that
// (NFS) have it step aside first, to a name from which it is removed.
func Replace(op, tmp, final, aside string) error { return replace(kernel{}, op, tmp, final, aside) }

func replace(d disk, op, tmp, final, aside string) error {
	for _, step := range []func() error{
		func() error { return syncPath(d, tmp) },
		func() error { return swap(d, tmp, final, aside) },
		func() error { return syncPath(d, filepath.Dir(final)) },
	} {
		if err := step(); err != nil {
			return about(op, final, err)
		}
	}
	_ = os.RemoveAll(aside) // the maker of tmp recognises it as abandoned
	return nil
}

// swap tries what can't leave final without a folder first.
func swap(d disk, tmp, final, aside string) error {
	err := d.exchange(tmp, final)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if err := d.rename(final, aside); err != nil {
			return err
		}
	}
	err = d.rename(tmp, final)
	if errors.Is(err, fs.ErrExist) { // another process has put one there meanwhile
		err = d.exchange(tmp, final)
	}
	if err != nil {
		_ = d.rename(aside, final) // nothing more can be done than to put it back
		return err
	}
	return nil
}

// MkdirAll makes a folder, and those above it that are missing.
func MkdirAll(op, dir string) error {
	if err := mkdirAll(kernel{}, filepath.Clean(dir)); err != nil {
		return fault.System(op, "", err) // about the one that it is about
	}
	return nil
}

func mkdirAll(d disk, dir string) error {
	parent := filepath.Dir(dir)
	if isFolder(dir) || parent == dir {
		return nil
	}
	if err := mkdirAll(d, parent); err != nil {
		return err
	}
	// Another process may make it at the same moment, and not have synced it yet.
	if err := d.mkdir(dir); err != nil && !isFolder(dir) {
		return err
	}
	return syncPath(d, parent)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Sync makes the names in a folder durable, of files that are open for longer.
func Sync(op, dir string) error { return about(op, dir, syncPath(kernel{}, dir)) }
