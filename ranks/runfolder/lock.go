package runfolder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
	"siafu/internal/scratch"
)

// lockFile is the name of the lock in a run folder.
const lockFile = "lock"

const (
	// lockPoll is the interval of attempts to take a held lock.
	lockPoll = 50 * time.Millisecond
	// launchWait is the time to wait for a process of the same launch. It must be ending, because
	// a launch runs one process at a time per folder.
	launchWait = 10 * time.Second
	// maxHolder is the maximum number of bytes read from a lock file.
	maxHolder = 4096
)

// Lock is the exclusive right to write a run folder. The kernel releases it when the process
// ends.
type Lock struct {
	file   *os.File
	made   bool   // this lock has created the file
	signed bool   // the file names this process
	before []byte // the file's previous contents
	// Warning is not empty if the file system has no locks, so that two processes may write at
	// once.
	Warning string
}

// holder is the lock file's description of the holding process.
type holder struct {
	PID    int       `json:"pid"`
	Host   string    `json:"host"`
	Launch string    `json:"launch,omitempty"`
	Since  time.Time `json:"since"`
}

// errHeld means that another process holds the lock. errStale means that the lock file was
// renamed or removed meanwhile.
var errHeld, errStale = errors.New("held"), errors.New("stale")

// Acquire locks an existing run folder for a process of a launch. launch may be empty. If another
// process holds the lock, Acquire waits up to wait, or longer for a process of the same launch.
// It then returns a fault of kind Usage that names the process. A lock file that siafu has not
// written is also a fault.
func Acquire(run, launch string, wait time.Duration) (*Lock, error) {
	path := filepath.Join(run, lockFile)
	for began := time.Now(); ; {
		l, err := tryLock(path, launch)
		switch {
		case err == nil:
			return l, nil
		case errors.Is(err, errStale):
			continue
		case !errors.Is(err, errHeld):
			return nil, err
		}
		text, _ := readLockAt(path)
		h := parseHolder(text) // nil if the file is empty
		if h != nil && launch != "" && h.Launch == launch {
			wait = max(wait, launchWait)
		}
		if time.Since(began) >= wait {
			return nil, fault.New(fault.Usage, op, run, "%s", h.describe()).
				Then("wait for it, or choose another --out")
		}
		time.Sleep(lockPoll)
	}
}

// tryLock takes the lock if it is free; otherwise it returns errHeld or errStale.
func tryLock(path, launch string) (*Lock, error) {
	l, err := openLock(path)
	if err != nil {
		return nil, fault.System(op, path, err)
	}
	if err := l.take(path); err != nil {
		l.file.Close()
		return nil, err
	}
	if err := l.sign(path, launch); err != nil {
		l.Undo()
		return nil, err
	}
	return l, nil
}

// openLock opens the lock file, and creates it if missing.
func openLock(path string) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err == nil {
			return &Lock{file: f}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		if err == nil {
			return &Lock{file: f, made: true}, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
}

// take locks the open file.
func (l *Lock) take(path string) error {
	switch err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return errHeld
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
		l.Warning = fmt.Sprintf(
			"%s: this file system does not support locks: make sure that no other process trains into this folder", path)
	case err != nil:
		return fault.System(op, path, err)
	}
	if !scratch.IsAt(path, l.file) {
		return errStale
	}
	return nil
}

// sign writes the holder to the lock file. A full disk does not prevent locking.
func (l *Lock) sign(path, launch string) error {
	var err error
	if l.before, err = readLock(l.file); err != nil {
		return fault.System(op, path, err)
	}
	if !isLockText(l.before) {
		return fault.New(fault.Usage, op, path, "siafu would overwrite this file, but has not written it").
			Then("move it away, or choose another --out")
	}
	l.signed = true
	host, _ := os.Hostname() // without a host name, the file contains none
	text, err := json.Marshal(holder{os.Getpid(), host, launch, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return fault.System(op, path, err)
	}
	if err := l.write(append(text, '\n')); err != nil && !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		return fault.System(op, path, err)
	}
	return nil
}

// write replaces the content of the file by text. After an error the file is empty.
func (l *Lock) write(text []byte) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt(text, 0)
	if err != nil {
		_ = l.file.Truncate(0)
	}
	return err
}

// isLock reports whether path is a lock file of siafu: a file that is empty or was written by sign,
// or a file that no longer exists, because its holder may remove it after the caller has listed it.
func isLock(path string) bool {
	text, err := readLockAt(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && isLockText(text)
}

// isLockText reports whether the content is empty or was written by sign.
func isLockText(text []byte) bool {
	return len(text) == 0 || parseHolder(text) != nil
}

func readLock(f *os.File) ([]byte, error) {
	return io.ReadAll(io.LimitReader(io.NewSectionReader(f, 0, maxHolder+1), maxHolder+1))
}

func readLockAt(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readLock(f)
}

// parseHolder parses the content that sign writes. It returns nil for any other content.
func parseHolder(text []byte) *holder {
	h := &holder{}
	if json.Unmarshal(text, h) != nil || h.PID <= 0 || h.Since.IsZero() {
		return nil
	}
	return h
}

// describe returns a description of the holder; nil is an unknown holder.
func (h *holder) describe() string {
	if h == nil {
		return "another process is writing it"
	}
	return fmt.Sprintf("process %d on %s has been writing it since %s", h.PID, h.Host, h.Since.Format(time.RFC3339))
}

// Release releases the lock. The file remains, but empty.
func (l *Lock) Release() error {
	_ = l.file.Truncate(0)
	return l.close()
}

// close unlocks the file before it closes it. A child process that is being started has the
// same open file until it executes its program, and would keep the lock until then.
func (l *Lock) close() error {
	_ = unix.Flock(int(l.file.Fd()), unix.LOCK_UN)
	return l.file.Close()
}

// Undo releases the lock and restores the lock file, or removes it if it did not exist. A
// process that has opened the file meanwhile detects that its name is gone.
func (l *Lock) Undo() {
	switch {
	case l.made:
		_ = os.Remove(l.file.Name())
	case l.signed:
		_ = l.write(l.before)
	}
	_ = l.close()
}
