package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"siafu/internal/testkit/hosttest"
)

// terminal returns the two ends of a pseudo terminal. Closing the user's end sends SIGHUP to a
// process that it controls.
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

// After the terminal or the connection is closed, there is a checkpoint to resume from; with
// nohup the run continues. Its output goes to a closed terminal.
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

// A signal stops a run whose output is a full pipe.
func TestStopWithFullPipe(t *testing.T) {
	receiveHangups(t)
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			read, full, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			defer full.Close()
			data, out := small(t), filepath.Join(t.TempDir(), "run")
			cmd := exec.CommandContext(t.Context(), os.Args[0], "train", data, "--out", out, "--epochs", "10000000")
			cmd.Env = append(os.Environ(), asProgram+"=1")
			cmd.Stdout, cmd.Stderr = full, full
			size, err := unix.FcntlInt(full.Fd(), unix.F_GETPIPE_SZ, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := full.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			guard := time.AfterFunc(hosttest.Patience, func() { _ = cmd.Process.Kill() })
			defer guard.Stop()
			for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				if _, err := os.Stat(filepath.Join(out, "lock")); err == nil {
					break
				}
			}
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the code is looked at
			if code := cmd.ProcessState.ExitCode(); code != 75 {
				t.Fatalf("%v, want exit 75", cmd.ProcessState)
			}
			checkSaved(t, out)
		})
	}
}

// receiveHangups makes the processes of a test receive SIGHUP also if the tests run under nohup: a process
// ignores what its parent ignores.
func receiveHangups(t *testing.T) {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(received) })
}

// checkSaved looks for the one checkpoint of a run.
func checkSaved(t *testing.T, out string) {
	t.Helper()
	saved, err := os.ReadDir(filepath.Join(out, "checkpoints"))
	if err != nil || len(saved) != 1 {
		t.Errorf("%d checkpoints: %v", len(saved), err)
	}
}

// hangUp starts a command on a new terminal, closes the terminal after some epochs, and waits
// for the end.
func hangUp(t *testing.T, cmd *exec.Cmd, metrics string) {
	t.Helper()
	user, process := terminal(t)
	receiveHangups(t)
	said, drained := on(t, cmd, user, process)
	trained := func() bool {
		text, err := os.ReadFile(metrics)
		return err == nil && bytes.Count(text, []byte("\n")) >= 3
	}
	for deadline := time.Now().Add(hosttest.Patience); !trained() && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	user.Close()
	<-drained
	guard := time.AfterFunc(hosttest.Patience, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	var exited *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	if t.Failed() || !trained() {
		t.Fatalf("it said\n%s", said.String())
	}
}

// On a terminal a run is one line that fits, other messages have their own lines, and the log
// has every epoch.
func TestLiveLine(t *testing.T) { checkLiveLine(t, os.Args[0]) }

// checkLiveLine trains with a command: a program, or a launcher and a program.
func checkLiveLine(t *testing.T, command ...string) {
	t.Helper()
	const columns = 60
	data, out := small(t), filepath.Join(t.TempDir(), "run")
	command = append(command, "train", data, "--out", out, "--epochs", "10000000")
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	said := interrupt(t, cmd, columns, filepath.Join(out, "metrics.jsonl"))
	if code := cmd.ProcessState.ExitCode(); code != 75 {
		t.Fatalf("%v\n%s", cmd.ProcessState, said)
	}
	live := 0
	for _, line := range strings.FieldsFunc(said, func(r rune) bool { return r == '\n' || r == '\r' }) {
		shown, redrawn := strings.CutPrefix(strings.TrimSuffix(line, "^C"), "\033[K") // what was typed is echoed
		switch {
		case redrawn && strings.Contains(shown, "loss "):
			if live++; len(shown) >= columns {
				t.Errorf("%d columns: %q", len(shown), shown)
			}
		case strings.Contains(line, "loss "):
			t.Errorf("behind other words: %q", line)
		}
	}
	if live < 2 {
		t.Errorf("%d lines of epochs in\n%s", live, said)
	}
	metrics, _ := os.ReadFile(filepath.Join(out, "metrics.jsonl"))
	log, _ := os.ReadFile(filepath.Join(out, "log.txt"))
	if epochs := bytes.Count(metrics, []byte("\n")); bytes.Count(log, []byte("\nepoch=")) != epochs {
		t.Errorf("the log has not the %d epochs:\n%.300s", epochs, log)
	}
}

// interrupt starts a command on a terminal so wide, types Ctrl-C when some epochs are
// trained, and returns what the terminal got.
func interrupt(t *testing.T, cmd *exec.Cmd, columns uint16, metrics string) string {
	t.Helper()
	user, process := terminal(t)
	defer user.Close()
	raw, err := process.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	sized := raw.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	})
	if err := errors.Join(sized, err); err != nil {
		t.Fatal(err)
	}
	said, drained := on(t, cmd, user, process)
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(metrics); err == nil && bytes.Count(text, []byte("\n")) >= 300 {
			break
		}
	}
	_, _ = user.WriteString("\x03")
	guard := time.AfterFunc(hosttest.Patience, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	_ = cmd.Wait() // the state says it all
	<-drained
	return said.String()
}

// on starts a command with process as its terminal. The output at the other end is complete
// when drained is closed, after either end is closed.
func on(t *testing.T, cmd *exec.Cmd, user, process *os.File) (said *bytes.Buffer, drained chan struct{}) {
	t.Helper()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = process, process, process
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	process.Close()
	said, drained = &bytes.Buffer{}, make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(said, user)
	}()
	return said, drained
}
