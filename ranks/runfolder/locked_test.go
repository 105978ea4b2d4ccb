package runfolder

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// Locked reports at once whether a process writes a folder, without taking its lock.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	if _, known := Locked(dir); known {
		t.Error("a folder without a lock is known")
	}
	l, err := Acquire(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/locks"); err != nil {
		t.Skip("the kernel lists no locks here")
	}
	held, known := Locked(dir)
	if !known {
		t.Skipf("the list of locks is not of this file system, or there is none: %s", l.Warning)
	}
	if !held {
		t.Error("the lock is not seen")
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if held, known := Locked(dir); held || !known {
		t.Errorf("after its end: held=%v known=%v", held, known)
	}
	other := filepath.Join(dir, lockFile)
	host, _ := os.Hostname()
	ended := exec.Command("true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	defer ended.Wait()
	pid := ended.Process.Pid
	for deadline := time.Now().Add(hosttest.Patience); isRunning(pid) && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	// A living process, an id beyond the maximum, and an ended process.
	for pid, want := range map[int]bool{os.Getpid(): false, 1 << 22: true, ended.Process.Pid: true} {
		text := fmt.Sprintf(`{"pid":%d,"host":%q,"since":"2020-01-01T00:00:00Z"}`, pid, host)
		if err := os.WriteFile(other, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if held, known := Locked(dir); held || known != want {
			t.Errorf("process %d without a lock: held=%v known=%v", pid, held, known)
		}
	}
	if err := os.WriteFile(other, []byte(`{"pid":1,"host":"elsewhere.invalid","since":"2020-01-01T00:00:00Z"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, known := Locked(dir); known {
		t.Error("another host's lock is known here")
	}
}

func TestInLockTable(t *testing.T) {
	table := filepath.Join(t.TempDir(), "locks")
	text := "1: POSIX  ADVISORY  WRITE 7 08:01:12 0 EOF\n2: FLOCK  ADVISORY  WRITE 0 08:01:13 0 EOF\n2: -> FLOCK  " +
		"ADVISORY  WRITE 9 08:01:14 0 EOF\n"
	if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{"08:01:12": false, "08:01:13": true, "08:01:14": false} {
		if held, known := inLockTable(table, file); held != want || !known {
			t.Errorf("%s: %v %v", file, held, known)
		}
	}
	if _, known := inLockTable(table+"x", ""); known {
		t.Error("no table tells something")
	}
}
