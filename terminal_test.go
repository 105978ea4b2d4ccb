package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal; a process that has it for its own is told when
// the other end is closed.
func terminal(t *testing.T) (user, process *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	// Not by Fd, after which Close would wait for a Read.
	raw, err := user.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	controlled := raw.Control(func(fd uintptr) {
		if number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err == nil {
			err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
	})
	if err := errors.Join(controlled, err); err != nil {
		t.Fatal(err)
	}
	if process, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	return user, process
}

// Who closes the terminal, or loses the connection, finds a checkpoint from
// which the run goes on; with nohup the run does not even notice. What it says
// meanwhile goes to a terminal that is no more.
func TestClosedTerminal(t *testing.T) {
	for _, tc := range []struct {
		name   string
		shell  string // that the program is started by
		epochs string
		code   int
	}{
		{"train", `exec "$@"`, "10000000", 75},
		{"nohup", `trap "" HUP; exec "$@"`, "300", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			data, out := small(t), filepath.Join(t.TempDir(), "run")
			args := []string{"train", data, "--out", out, "--epochs", tc.epochs}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", append([]string{"-c", tc.shell, "sh", os.Args[0]}, args...)...)
			cmd.Env = append(os.Environ(), asProgram+"=1")
			hangUp(t, cmd, filepath.Join(out, "metrics.jsonl"))
			if code := cmd.ProcessState.ExitCode(); code != tc.code {
				log, _ := os.ReadFile(filepath.Join(out, "log.txt"))
				t.Fatalf("%v, want exit %d\n%s", cmd.ProcessState, tc.code, log)
			}
			checkSaved(t, out)
		})
	}
}

// checkSaved looks for the one checkpoint of a run.
func checkSaved(t *testing.T, out string) {
	t.Helper()
	saved, err := os.ReadDir(filepath.Join(out, "checkpoints"))
	if err != nil || len(saved) != 1 {
		t.Errorf("%d checkpoints: %v", len(saved), err)
	}
}

// hangUp starts a command on a terminal of its own, closes the terminal when
// some epochs are trained, and waits for the end.
func hangUp(t *testing.T, cmd *exec.Cmd, metrics string) {
	t.Helper()
	user, process := terminal(t)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = process, process, process
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	process.Close()
	var said bytes.Buffer
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(&said, user) // ends when the terminal is closed
	}()
	trained := func() bool {
		text, err := os.ReadFile(metrics)
		return err == nil && bytes.Count(text, []byte("\n")) >= 3
	}
	for deadline := time.Now().Add(time.Minute); !trained() && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	user.Close()
	<-drained
	guard := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	var exited *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	if t.Failed() || !trained() {
		t.Fatalf("it said\n%s", said.String())
	}
}
