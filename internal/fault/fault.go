package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// Kind classifies a fault. The zero value is Runtime.
type Kind uint8

// The kinds, with their exit codes from sysexits.h where a code exists.
const (
	Runtime  Kind = iota // 1: failed while running
	Usage                // 64: the command line is wrong
	Data                 // a file has invalid contents
	Missing              // 66: an input does not exist
	IO                   // 74: reading or writing failed
	Stopped              // 75: stopped by a signal or a budget, state saved; run again
	Diverged             // values became NaN or grew without bound; a repetition gives the same result
	Config               // options contradict one another or do not fit the machine
)

// ExitCode returns the exit status of a process that ends with a fault of kind k.
func (k Kind) ExitCode() int {
	switch k {
	case Usage:
		return 64
	case Data:
		return 65
	case Missing:
		return 66
	case IO:
		return 74
	case Stopped:
		return 75
	case Diverged:
		return 76
	case Config:
		return 78
	}
	return 1
}

// Error is one fault. Empty fields are left out of the message, which reads
// "op: path: detail: cause; remedy".
type Error struct {
	Op     string // what was being done, "import npz"
	Kind   Kind
	Path   string // the file concerned
	Detail string // what was found, with its position and value
	Remedy string // what the user does next
	Err    error  // the cause
}

func (e *Error) Error() string {
	var parts []string
	for _, s := range []string{e.Op, e.Path, e.Detail} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	msg := strings.Join(parts, ": ")
	if e.Remedy != "" {
		msg += "; " + e.Remedy
	}
	return msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns a fault whose detail is formatted.
func New(kind Kind, op, path, format string, args ...any) *Error {
	return &Error{Op: op, Kind: kind, Path: path, Detail: fmt.Sprintf(format, args...)}
}

// Then returns e with the remedy formatted.
func (e *Error) Then(format string, args ...any) *Error {
	c := *e
	c.Remedy = fmt.Sprintf(format, args...)
	return &c
}

// System wraps an error of the operating system about path. The kind is Missing if the file does
// not exist, otherwise IO.
func System(op, path string, err error) *Error {
	e := &Error{Op: op, Kind: IO, Path: path, Err: err}
	var pe *fs.PathError
	if errors.As(err, &pe) && (path == "" || pe.Path == path) {
		e.Path, e.Err = pe.Path, pe.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Kind, e.Remedy = Missing, "check the path"
	case noRoom(err):
		e.Remedy = "free disk space or choose another folder"
	case forbidden(err):
		e.Remedy = "check the permissions"
	}
	return e
}

// Lasting reports whether the same command would fail again unless the user changes something.
// This depends on the kind, or on lack of space, permission or the file.
func Lasting(err error) bool {
	switch KindOf(err) {
	case Usage, Data, Missing, Stopped, Diverged, Config:
		return true
	}
	return noRoom(err) || forbidden(err) || errors.Is(err, fs.ErrNotExist)
}

func noRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

func forbidden(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// KindOf returns the kind of the outermost fault in err's chain, Runtime if there is none.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return Runtime
}

// KindOfCode returns the kind of an exit code; Runtime if unknown.
func KindOfCode(code int) Kind {
	for k := Runtime; k <= Config; k++ {
		if k.ExitCode() == code {
			return k
		}
	}
	return Runtime
}

// ExitCode returns the exit status for err, 0 for nil.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	return KindOf(err).ExitCode()
}
