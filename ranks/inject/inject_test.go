package inject

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
)

func environment(value string) func(string) string {
	return func(name string) string {
		if name == Variable {
			return value
		}
		return ""
	}
}

// Faults that another view follows strike as they were told to, and others as they
// always do.
func TestViews(t *testing.T) {
	for kind, want := range map[string]string{End: "end", Move: "move", "wait": ""} {
		mark := filepath.Join(t.TempDir(), "mark")
		if err := os.WriteFile(mark+".go", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		env := environment("2:AV:3:" + kind + ":" + mark)
		f, err := New(env, 2)
		if err != nil {
			t.Fatal(err)
		}
		struck := ""
		f.Views(func() { struck += "end" }, func() { struck += "move" })
		f.At("AV", 3)
		f.At("AV", 4)
		if struck != want || Replaces(env) != (want != "") {
			t.Errorf("%s: struck %q, replaces %t", kind, struck, Replaces(env))
		}
	}
	if Replaces(environment("")) || Replaces(environment("2:AV:3:end")) {
		t.Error("no fault replaces a view")
	}
}

func TestNew(t *testing.T) {
	for _, tc := range []struct {
		text    string
		strikes bool // rank 2
		bad     bool
	}{
		{"", false, false},
		{"2:GA:3:kill:/m", true, false},
		{"2:save state.json:3:wait:/a:b", true, false},
		{"1:GA:3:kill:/m", false, false},
		{"GA:3:kill:/m", false, true},
		{"x:GA:3:kill:/m", false, true},
		{"2:GA:x:kill:/m", false, true},
		{"2:GA:3:burn:/m", false, true},
		{"1:GA:3:kill:", false, true},
	} {
		f, err := New(environment(tc.text), 2)
		if (f != nil) != tc.strikes || (fault.KindOf(err) == fault.Usage) != tc.bad {
			t.Errorf("%q: %v %v", tc.text, f, err)
		}
	}
}

// A rank pauses only at its moment, until it may continue. It does not pause again after a
// restart.
func TestOnceAtItsMoment(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	start := func() *Fault {
		f, err := New(environment("0:GA:3:wait:"+mark), 0)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := start()
	f.At("GA", 2)
	f.At("AV", 3)
	if _, err := os.Stat(mark); err == nil {
		t.Fatal("it has struck already")
	}
	passed := make(chan bool)
	go func() { f.At("GA", 4); close(passed) }()
	for deadline := time.Now().Add(hosttest.Patience); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(mark); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not strike")
		}
	}
	select {
	case <-passed:
		t.Fatal("it goes on by itself")
	case <-time.After(20 * time.Millisecond):
	}
	if err := os.WriteFile(mark+".go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	<-passed
	if err := os.Remove(mark + ".go"); err != nil {
		t.Fatal(err)
	}
	start().At("GA", 4) // returns
	(*Fault)(nil).At("GA", 4)
}

const child = "SIAFU_TEST_INJECT_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		f, err := New(os.Getenv, 0)
		if err == nil {
			f.At(Start, 0)
		}
		os.Exit(7)
	}
	os.Exit(m.Run())
}

// The faults are real.
func TestKinds(t *testing.T) {
	for kind, want := range map[string]string{"kill": "signal: killed", "exit": "exit status 1", "stop": "signal: killed"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		mark := filepath.Join(t.TempDir(), "mark")
		cmd.Env = append(os.Environ(), child+"=1", Variable+"=0:"+Start+":0:"+kind+":"+mark)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kind == "stop" {
			var s syscall.WaitStatus
			if _, err := syscall.Wait4(cmd.Process.Pid, &s, syscall.WUNTRACED, nil); err != nil || !s.Stopped() {
				t.Errorf("it is not stopped: %v %v", s, err)
			}
			_ = cmd.Process.Kill()
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
