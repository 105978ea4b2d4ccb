package partition

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"siafu/graph/fault"
)

// replace puts the folder tmp in the place of final, durably. Where final
// exists the two change places in one step, so that final is whole at any
// moment, and the older one is left at tmp.
func replace(tmp, final string) error {
	// MkdirTemp makes folders that only their owner can read.
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fault.System(op, tmp, err)
	}
	if err := syncFolder(tmp); err != nil {
		return err
	}
	if err := swap(tmp, final); err != nil {
		return fault.System(op, final, err)
	}
	return syncFolder(filepath.Dir(final))
}

// swap renames tmp to final. Some file systems (NFS) can't exchange two names;
// there the older folder steps aside first.
func swap(tmp, final string) error {
	err := unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, final, unix.RENAME_EXCHANGE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT):
		return os.Rename(tmp, final)
	case !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS):
		return err
	}
	old := tmp + ".old"
	if err := os.Rename(final, old); err != nil {
		return err
	}
	if err := os.Rename(tmp, final); err != nil {
		return errors.Join(err, os.Rename(old, final))
	}
	return os.RemoveAll(old)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fault.System(op, dir, err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fault.System(op, dir, err)
	}
	return nil
}
