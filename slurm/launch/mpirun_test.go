//go:build mpi

package launch

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
)

// Real ranks under a real mpirun: the supervisor is a process of its own, and
// signals come from outside.
func TestUnderMpirun(t *testing.T) {
	if _, err := exec.LookPath("mpirun"); err != nil {
		t.Skip("no mpirun on this machine: install openmpi-bin")
	}
	siafu, standin := hosttest.Programs(t)
	for _, tc := range []struct {
		name   string
		args   []string
		send   func(launcher int)
		code   int
		log    string // pattern of the stand-in's log
		prints string // pattern of the output
	}{
		{"to the end", nil, nil, 0, `^start epoch=1 ranks=3 .*\nfinished\n$`, ``},
		{"crash", []string{"--crash-at", "4"}, nil, 0, `^start epoch=1 .*\nstart epoch=4 .*\nfinished\n$`,
			`signal 9 \(killed\): rank 2 on \S+ was ended by signal 9 \(Killed\); restart 1 of 2 in 1s`},
		{"stop", []string{"--epochs", "400"}, kill(syscall.SIGTERM), 75, `^start .*\nstopped after=\d+\n$`, ``},
		{"stop by the terminal", []string{"--epochs", "400"}, kill(syscall.SIGINT), 75, `^start .*\nstopped after=\d+\n$`, ``},
		{"checkpoint and go on", []string{"--epochs", "40"}, kill(syscall.SIGUSR1), 0, `^start .*\nfinished\n$`, ``},
		{"stop now", []string{"--nap", "2s"}, kill(syscall.SIGINT, syscall.SIGINT), 130, ``, ``},
		// The signal may meet a rank that has no handler yet, and ends it: then there is nothing to save.
		{"stop before a rank is there", []string{"--epochs", "400"}, kill(syscall.SIGTERM), 75, `^(start .*\nstopped after=\d+\n)?$`, ``},
		// Output that mpirun cannot write, or a debugger, stops mpirun.
		{"stop with mpirun stopped", []string{"--epochs", "400"}, stopMpirun, 75, `^start .*\nstopped after=\d+\n$`, `receive it directly`},
		// As a batch system does at preemption.
		{"stop all processes", []string{"--epochs", "400"}, killAll, 75, `^start .*\nstopped after=\d+\n$`, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if !mpitest.OpenMPI() { // Hydra reports neither who died nor that it forwards a signal
				if tc.prints != "" && tc.name != "crash" {
					t.Skip("needs the mpirun of Open MPI")
				}
				tc.prints = ""
			}
			dir := filepath.Join(t.TempDir(), "run")
			line := append([]string{"launch", "-n", "3", "--restarts", "2", "--backoff", "1s", "--program", standin, "train", "data",
				"--out", dir, "--resume", "auto"}, tc.args...)
			cmd := exec.Command(siafu, line...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			guard := time.AfterFunc(hosttest.Patience, func() { _ = cmd.Process.Kill() })
			defer guard.Stop()
			switch {
			case tc.send == nil:
			case tc.name == "stop before a rank is there":
				awaitChild(t, cmd.Process.Pid)
				tc.send(cmd.Process.Pid)
			default:
				awaitFile(t, filepath.Join(dir, "epoch"))
				tc.send(cmd.Process.Pid)
			}
			_ = cmd.Wait() // the code is looked at
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			if got := cmd.ProcessState.ExitCode(); got != tc.code || !regexp.MustCompile(tc.log).Match(log) ||
				!regexp.MustCompile(tc.prints).Match(out.Bytes()) {
				t.Errorf("exit %d, want %d\n%s%s", got, tc.code, log, out.String())
			}
			noneLeft(t, dir)
		})
	}
}

// A run that mpirun cannot start is not started again.
func TestNothingToRun(t *testing.T) {
	if _, err := exec.LookPath("mpirun"); err != nil {
		t.Skip("no mpirun on this machine: install openmpi-bin")
	}
	siafu, _ := hosttest.Programs(t)
	absent := filepath.Join(t.TempDir(), "absent")
	out, err := exec.Command(siafu, "launch", "-n", "2", "--backoff", "1ms", "--program", absent, "train", "data",
		"--out", "run").CombinedOutput()
	if err == nil || !strings.Contains(string(out), absent) || strings.Contains(string(out), "restart") {
		t.Errorf("%v\n%s", err, out)
	}
}

// kill sends signals to the supervisor.
func kill(signals ...syscall.Signal) func(int) {
	return func(pid int) {
		for _, s := range signals {
			_ = syscall.Kill(pid, s)
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// stopMpirun stops mpirun, and asks the supervisor to stop.
func stopMpirun(pid int) {
	for _, mpirun := range children(pid) {
		_ = syscall.Kill(mpirun, syscall.SIGSTOP)
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
}

// killAll sends SIGTERM to the supervisor and to all below it.
func killAll(pid int) {
	below := []int{pid}
	for i := 0; i < len(below); i++ {
		below = append(below, children(below[i])...)
	}
	for _, p := range below {
		_ = syscall.Kill(p, syscall.SIGTERM)
	}
}

func awaitChild(t *testing.T, pid int) {
	t.Helper()
	for range 1000 {
		if children(pid) != nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Error("it starts no process")
}

func awaitFile(t *testing.T, path string) {
	t.Helper()
	for range 400 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s does not come", path)
}

// noneLeft looks for ranks of a run by its folder on their command line.
func noneLeft(t *testing.T, dir string) {
	t.Helper()
	var left []string
	for range 30 {
		if left = mpitest.Running(dir); len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("processes are left: %s", left)
}
