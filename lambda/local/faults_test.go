package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"golang.org/x/sys/unix"
)

// Two sandboxes process a duplicate, and one answer is returned.
func TestDuplicate(t *testing.T) {
	b := newBench(t, Options{Concurrency: 1, Faults: Faults{Duplicate: 1}})
	path := filepath.Join(t.TempDir(), "notes")
	answered := b.pid(t, job{Do: "note", Target: path})
	eventually(t, "only one has done it", func() bool {
		text, _ := os.ReadFile(path)
		return bytes.Count(text, []byte("\n")) == 2 && bytes.Contains(text, strconv.AppendInt(nil, int64(answered), 10))
	})
	if s := b.Stats(); s.Invocations != 2 || s.Started != 2 || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
	eventually(t, "one of them is not there for the next", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.warm) == 2
	})
	b.pid(t, job{})
	if s := b.Stats(); s.Started != 2 {
		t.Errorf("%+v", s)
	}
}

// A function is asked for a corrupt result. Payloads that are not requests are unchanged.
func TestCorrupt(t *testing.T) {
	good, bad := newBench(t, Options{}), newBench(t, Options{Faults: Faults{Corrupt: 1}})
	if result[bool](t, good, job{Do: "corrupt"}) || !result[bool](t, bad, job{Do: "corrupt"}) {
		t.Error("a corrupt result is demanded without the fault, or not with it")
	}
	for payload, want := range map[string]string{"{}": `{"Corrupt":true}`, "[1]": "[1]", "null": "null"} {
		if got := corrupted([]byte(payload)); string(got) != want {
			t.Errorf("%s becomes %s", payload, got)
		}
	}
}

// A slow sandbox takes ten times as long, for a short task and with a processor share.
func TestStraggle(t *testing.T) {
	b := newBench(t, Options{Faults: Faults{Straggle: 1}})
	const cpu = 60 * time.Millisecond
	for range 2 {
		within(t, 8*cpu, 13*cpu, func() burnt { return b.burns(t, cpu) })
	}
	for range 20 {
		began := time.Now()
		if b.pid(t, job{}); time.Since(began) < 5*time.Millisecond {
			t.Errorf("a task of nothing takes %v", time.Since(began))
		}
	}
}

// Some invocations are throttled, and some get a sandbox that does not start.
func TestThrottleAndStart(t *testing.T) {
	b := newBench(t, Options{Concurrency: 3, Faults: Faults{Throttle: 1}})
	_, err := b.invoke(job{})
	if throttled := (*types.TooManyRequestsException)(nil); !errors.As(err, &throttled) ||
		b.Stats().Throttled != 1 || b.Stats().Started != 0 {
		t.Errorf("%v %+v", err, b.Stats())
	}
	b = newBench(t, Options{Faults: Faults{Start: 1}})
	for range 2 {
		if f := b.failed(t, job{}); f.Type != "Runtime.ExitError" {
			t.Errorf("%+v", f)
		}
	}
	if s := b.Stats(); s.Started != 2 || s.Failed != 2 {
		t.Errorf("%+v", s)
	}
}

// hostVariable is set if this executable must run a service.
const hostVariable = "SIAFU_TEST_HOST"

// host runs a service whose one sandbox is nearly always suspended, and prints the process of
// the sandbox.
func host() {
	s, err := Start(Options{Function: os.Args[0], Name: "f", Memory: 2, Limits: Limits{Processor: true}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	payload, _ := json.Marshal(job{Do: "burn", N: 1000_000})
	go func() { _, _ = s.run(&invocation{id: "i", payload: payload, done: make(chan answer, 2)}) }()
	for printed := false; ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		for _, b := range s.sandboxes {
			if !printed {
				fmt.Println(b.process.Pid)
			}
			printed = true
		}
		s.mu.Unlock()
	}
}

// state returns the letter of a process's state, X if there is no process.
func state(pid int) byte {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := bytes.Cut(text, []byte(") "))
	if err != nil || len(rest) == 0 {
		return 'X'
	}
	return rest[0]
}

// A suspended sandbox ends with a killed program, even if its new parent is in the same session,
// as in many containers. There the kernel does not end suspended processes.
func TestStoppedSandboxEnds(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), hostVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the sandbox does not stand still", func() bool { return state(pid) == 'T' })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "it stands still for ever", func() bool { return strings.IndexByte("XZ", state(pid)) >= 0 })
	_, _ = unix.Wait4(pid, nil, 0, nil) // it is ours now
}
