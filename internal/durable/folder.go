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

// NewFolder begins a folder with the final name final. It creates missing parents.
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

// Replace renames the folder tmp to final. The files of tmp must be durable. If final exists,
// Replace exchanges the two folders in one step, so that final is complete at any time. The older
// folder is then at tmp. If the file system cannot exchange folders (NFS), Replace first moves the
// older folder to aside, and removes it at the end.
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
	_ = os.RemoveAll(aside) // package scratch removes leftovers
	return nil
}

// swap tries the atomic exchange first, and then two renames.
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
	if errors.Is(err, fs.ErrExist) { // another process has created final meanwhile
		err = d.exchange(tmp, final)
	}
	if err != nil {
		_ = d.rename(aside, final) // restore the older folder
		return err
	}
	return nil
}

// MkdirAll creates a folder and its missing parents durably.
func MkdirAll(op, dir string) error {
	if err := mkdirAll(kernel{}, filepath.Clean(dir)); err != nil {
		return fault.System(op, "", err) // err names the folder
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
	// Another process may create the folder at the same time, and may not have synced its name yet.
	if err := d.mkdir(dir); err != nil && !isFolder(dir) {
		return err
	}
	return syncPath(d, parent)
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Sync makes the names in a folder durable, for files that stay open.
func Sync(op, dir string) error { return about(op, dir, syncPath(kernel{}, dir)) }
