package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"siafu/graph/fault"
)

const (
	opLock   = "run folder"
	lockFile = "lock"
	// lockPoll is how often a held lock is tried again.
	lockPoll = 50 * time.Millisecond
)

// Lock is the right to write a run folder. The kernel gives it back when the
// process ends, however it ends.
type Lock struct {
	file *os.File
	// Warning says that the file system knows no locks, so that nothing keeps
	// two processes apart; else it is empty.
	Warning string
}

// holder is what the lock file says of the process that holds it.
type holder struct {
	owner
	Since time.Time `json:"since"`
}

// Acquire locks the run folder, which exists. Where another process holds it,
// it waits so long for that one to end, and then returns a fault of kind Usage
// that names it.
func Acquire(run string, wait time.Duration) (*Lock, error) {
	path := filepath.Join(run, lockFile)
	for deadline := time.Now().Add(wait); ; time.Sleep(lockPoll) {
		l, err := try(path)
		switch {
		case err == nil:
			return l, nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, fault.System(opLock, path, err)
		case time.Now().After(deadline):
			return nil, fault.New(fault.Usage, opLock, run, "%s", whoHolds(path)).
				Then("wait for it, or choose another --out")
		}
	}
}

// try takes the lock if nobody has it; else the error is EWOULDBLOCK.
func try(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	l := &Lock{file: f}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
		l.Warning = fmt.Sprintf("%s: this file system has no locks: see to it that no other process trains into this folder", path)
	case err != nil:
		f.Close()
		return nil, err
	}
	if !l.current(path) { // the folder was replaced meanwhile
		f.Close()
		return nil, unix.EWOULDBLOCK
	}
	return l, l.sign()
}

// current tells whether path still names the file that is locked.
func (l *Lock) current(path string) bool {
	locked, err := l.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(locked, named)
}

// sign says in the file who holds it. A full disk does not keep anybody from
// locking.
func (l *Lock) sign() error {
	text, err := json.Marshal(holder{self(), time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(append(text, '\n'), 0)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return nil
	}
	return err
}

// whoHolds reads a lock file of another process.
func whoHolds(path string) string {
	var h holder
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		var text []byte
		text, err = io.ReadAll(io.LimitReader(f, 4096))
		if err == nil {
			err = json.Unmarshal(text, &h)
		}
	}
	if err != nil {
		return "another process writes it"
	}
	return fmt.Sprintf("process %d on %s writes it since %s", h.PID, h.Host, h.Since.Format(time.RFC3339))
}

// Release gives the folder free. The file stays: another process may be about
// to lock it.
func (l *Lock) Release() error {
	_ = l.file.Truncate(0)
	return l.file.Close()
}
