package runfolder

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
	"siafu/internal/scratch"
	"siafu/internal/testkit/hosttest"
)

// wantFault fails the test unless err has a kind and says all that.
func wantFault(t testing.TB, err error, kind fault.Kind, says ...string) {
	t.Helper()
	for _, s := range says {
		if !strings.Contains(fmt.Sprint(err), s) {
			t.Errorf("%v; want it to say %q", err, s)
		}
	}
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%v of kind %d; want kind %d", err, fault.KindOf(err), kind)
	}
}

// If two processes lock a run folder, one succeeds, and the error of the other names it.
func TestLock(t *testing.T) {
	run := t.TempDir()
	first, err := Acquire(run, "", 0)
	if err != nil || first.Warning != "" {
		t.Fatal(first, err)
	}
	_, err = Acquire(run, "", 0)
	host, _ := os.Hostname()
	wantFault(t, err, fault.Usage, run, "process", strconv.Itoa(os.Getpid()), host, "another --out")

	time.AfterFunc(2*lockPoll, func() { first.Release() })
	second, err := Acquire(run, "", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	// A lock of a replaced folder does not lock the new one.
	if err := os.Remove(filepath.Join(run, lockFile)); err != nil {
		t.Fatal(err)
	}
	third, err := Acquire(run, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if path := filepath.Join(run, lockFile); scratch.IsAt(path, second.file) || !scratch.IsAt(path, third.file) {
		t.Error("the lock of a file that is gone counts")
	}
	for _, l := range []*Lock{second, third} {
		if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
	_, err = Acquire(filepath.Join(run, "none"), "", 0)
	wantFault(t, err, fault.Missing)
}

// A full disk does not prevent locking, which a run needs to free space.
func TestLockOnFullDisk(t *testing.T) {
	dir := hosttest.SmallDisk(t, "16k")
	if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 64<<10), 0o644); err == nil {
		t.Fatal("the disk is not full")
	}
	first, err := Acquire(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	_, err = Acquire(dir, "", 0)
	wantFault(t, err, fault.Usage, "another process is writing it")
}

// A claim that is given up leaves the lock file as it was found, and one that
// siafu has not written is not touched.
func TestLockUndone(t *testing.T) {
	for name, tc := range map[string]struct {
		before  string // absent where it is "absent"
		refused bool
	}{
		"absent":         {before: "absent"},
		"empty":          {before: ""},
		"a dead one's":   {before: `{"pid":999999999,"start":1,"host":"h","since":"2026-01-02T03:04:05Z"}` + "\n"},
		"not ours":       {before: "precious", refused: true},
		"not ours, long": {before: strings.Repeat("precious\n", 1000), refused: true},
		"JSON, not ours": {before: `{"pid":"x"}`, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			run := t.TempDir()
			path := filepath.Join(run, lockFile)
			if tc.before != "absent" {
				if err := os.WriteFile(path, []byte(tc.before), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			l, err := Acquire(run, "", 0)
			if tc.refused {
				wantFault(t, err, fault.Usage, path, "move it away")
			} else if err != nil {
				t.Fatal(err)
			} else {
				l.Undo()
			}
			after, err := os.ReadFile(path)
			if tc.before == "absent" {
				if !os.IsNotExist(err) {
					t.Errorf("%q %v", after, err)
				}
			} else if string(after) != tc.before {
				t.Errorf("%q", after)
			}
		})
	}
}

// A process of the same launch is waited for, and no other one.
func TestLockOfOneLaunch(t *testing.T) {
	run := t.TempDir()
	first, err := Acquire(run, "mine", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(run, "another", 0)
	wantFault(t, err, fault.Usage, "has been writing it")
	time.AfterFunc(2*lockPoll, func() { first.Release() })
	second, err := Acquire(run, "mine", 0)
	if err != nil {
		t.Fatal(err)
	}
	second.Release()
}

// TestLockBesideAChild: a lock ends with Release and Undo although a child process has the
// same open file between fork and exec.
func TestLockBesideAChild(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(l *Lock){"Release": func(l *Lock) { _ = l.Release() }, "Undo": (*Lock).Undo} {
		dir := t.TempDir()
		l, err := Acquire(dir, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		child, err := unix.Dup(int(l.file.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(child)
		end(l)
		if l, err = Acquire(dir, "", 0); err != nil {
			t.Errorf("after %s: %v", name, err)
			continue
		}
		_ = l.Release()
	}
}

// A holder removes its lock on release; a process that opened it before must not treat it as a
// foreign file.
func TestLockThatIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), lockFile)
	if !isLock(path) {
		t.Error("a lock that was removed is not one")
	}
	if err := os.WriteFile(path, []byte("a letter"), 0o644); err != nil || isLock(path) {
		t.Errorf("anything is a lock (%v)", err)
	}
}
