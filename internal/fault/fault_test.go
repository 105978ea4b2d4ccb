package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestMessage(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[string]error{
		"open: f.bin: 3 bytes: cause; import again": &Error{Op: "open", Path: "f.bin", Detail: "3 bytes",
			Remedy: "import again", Err: cause},
		"open: 3 of 4":               New(Data, "open", "", "%d of %d", 3, 4),
		"train: --lr=0; set 1 or so": New(Usage, "train", "", "--lr=0").Then("set %d or so", 1),
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if e := System("open", "x", cause); !errors.Is(e, cause) {
		t.Error("the cause is lost")
	}
}

func TestKinds(t *testing.T) {
	_, missing := os.Open(filepath.Join(t.TempDir(), "none"))
	for want, err := range map[int]error{
		0:  nil,
		1:  errors.New("something"),
		64: fmt.Errorf("wrapped: %w", New(Usage, "", "", "")),
		65: New(Data, "", "", ""),
		66: System("open", "", missing),
		74: System("write", "f", &fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}),
		75: New(Stopped, "", "", ""),
		76: New(Diverged, "", "", ""),
		78: New(Config, "", "", ""),
	} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: exit %d, want %d", err, got, want)
		}
	}
	if got := System("write", "f", &fs.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC}).
		Error(); got != "write: f: no space left on device; free disk space or choose another folder" {
		t.Error(got)
	}
}

// Errors of unchanged input recur; a crash or a read error may not.
func TestLasting(t *testing.T) {
	system := func(cause error) error { return fmt.Errorf("wrapped: %w", System("write", "f", cause)) }
	for _, c := range []struct {
		err  error
		want bool
	}{
		{system(syscall.ENOSPC), true}, {system(syscall.EDQUOT), true}, {system(syscall.EACCES), true}, {system(syscall.EROFS), true},
		{New(Usage, "", "", ""), true}, {New(Diverged, "", "", ""), true}, {system(fs.ErrNotExist), true},
		{system(syscall.EIO), false}, {errors.New("x"), false},
	} {
		if got := Lasting(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
