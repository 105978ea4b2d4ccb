package scratch

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Folder is a hidden folder that this process fills.
type Folder struct {
	Path string
	lock *os.File
}

// Make creates a folder next to final that only its owner can read. It removes the folders that
// dead processes have left for the same name. The parent of final must exist.
func Make(final string) (*Folder, error) { return New(final, 0o700, nil) }

// inMemory is the folder of an in-memory file system.
const inMemory = "/dev/shm"

// temporary is the final name in the paths of folders that never replace another folder.
const temporary = "siafu-tmp"

// Temp makes a folder in the system's folder for temporary files.
func Temp() (*Folder, error) { return Make(filepath.Join(os.TempDir(), temporary)) }

// TempInMemory makes a temporary folder in memory, if the system supports it.
func TempInMemory() (*Folder, error) {
	if f, err := Make(filepath.Join(inMemory, temporary)); err == nil {
		return f, nil
	}
	return Temp()
}

// SweepTemp sweeps folders that Temp and TempInMemory have made.
func SweepTemp(undo func(path string) error) (removed []string) {
	for _, dir := range []string{os.TempDir(), inMemory} {
		removed = append(removed, Sweep(filepath.Join(dir, temporary), undo)...)
	}
	return removed
}

// New creates a folder like Make, with the permissions perm before the umask. It passes undo to
// Sweep.
func New(final string, perm os.FileMode, undo func(path string) error) (*Folder, error) {
	Sweep(final, undo)
	var lock *os.File
	path, err := fresh(final, folderPrefix(final), func(path string) (err error) {
		if err = os.Mkdir(path, perm); err == nil {
			lock, err = hold(path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &Folder{path, lock}, nil
}

// Hide gives a folder a hidden name, from which Close removes it.
func Hide(path string) (*Folder, error) {
	hidden, err := fresh(path, folderPrefix(path), func(hidden string) error { return os.Rename(path, hidden) })
	if err != nil {
		return nil, err
	}
	return &Folder{Path: hidden}, nil
}

// Create makes a file like New. The file is open for reading and writing, and locked until it is
// closed.
func Create(final string, perm os.FileMode) (*os.File, error) {
	prefix := filepath.Base(final) + infix
	sweep(filepath.Dir(final), prefix, nil)
	var file *os.File
	_, err := fresh(final, prefix, func(path string) (err error) {
		if file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, perm); err != nil {
			return err
		}
		if err = lock(file, path); errors.Is(err, errNoLocks) {
			err = nil
		}
		if err != nil {
			file.Close()
		}
		return err
	})
	return file, err
}

// fresh calls make with an unused name next to final until it succeeds. Errors name final, because
// the user does not know the other name.
func fresh(final, prefix string, make func(path string) error) (string, error) {
	for {
		path := filepath.Join(filepath.Dir(final), newName(prefix))
		err := make(path)
		switch {
		case err == nil:
			return path, nil
		case errors.Is(err, fs.ErrExist), errors.Is(err, errTaken):
			continue // another process removed it as abandoned before it was locked
		}
		_ = os.Remove(path)
		return "", Named(final, err)
	}
}

// Named returns an error of the operating system with the final path, which the user knows.
func Named(path string, err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return &fs.PathError{Op: pe.Op, Path: path, Err: pe.Err}
	case errors.As(err, &le):
		return &fs.PathError{Op: le.Op, Path: path, Err: le.Err}
	}
	return err
}

func folderPrefix(final string) string { return "." + filepath.Base(final) + infix }

// Share passes the lock of the folder to a command that is not started yet. The folder is then
// abandoned when both processes have ended.
func (f *Folder) Share(cmd *exec.Cmd) {
	if f.lock != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, f.lock)
	}
}

// Close removes the folder at the temporary path: this folder, or the folder that was exchanged
// with it.
func (f *Folder) Close() {
	_ = os.RemoveAll(f.Path) // if this fails, the next Make removes the folder
	if f.lock != nil {
		_ = f.lock.Close()
	}
}

var (
	errTaken   = errors.New("scratch: another process holds or has removed it")
	errNoLocks = errors.New("scratch: the file system has no locks")
)

// hold locks an existing file or folder. The file is nil if the file system has no locks.
func hold(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	err = lock(f, path)
	if err != nil {
		f.Close()
	}
	if errors.Is(err, errNoLocks) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// lock locks an open file, if the path still names it then.
func lock(f *os.File, path string) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return errTaken
	case err != nil:
		return errNoLocks
	case !IsAt(path, f):
		return errTaken
	}
	return nil
}

// IsAt reports whether path still names the open and locked file f. IsAt is false after the file was
// renamed or removed.
func IsAt(path string, f *os.File) bool {
	locked, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named)
}
