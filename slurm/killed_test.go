//go:build mpi

package slurm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// launcherKilled kills siafu launch inside an allocation that lives on, as one
// that salloc has made for a shell: srun ends its step.
func launcherKilled(t *testing.T) {
	siafu, standin := hosttest.Programs(t)
	s := &scene{T: t, run: filepath.Join(t.TempDir(), "run")}
	const shell = `echo $SLURM_JOB_ID >"$0.id"; "$@" --out "$0" & echo $! >"$0.pid"; exec sleep 120`
	cmd := exec.Command("salloc", "--quiet", "--kill-command=TERM", "--ntasks=2", "bash", "-c", shell, s.run,
		siafu, "launch", "--launcher", "srun", "--program", standin, "train", "data", "--epochs", "100000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // it is cancelled
	s.id = s.read(".id")
	defer client0(t, "scancel", s.id)
	pid, _ := strconv.Atoi(s.read(".pid"))
	s.await("start epoch=1 ranks=2 ")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var left string
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if left = steps(t, s.id); left == "" {
			return
		}
	}
	t.Errorf("the step goes on: %s", left)
}

// read waits for what the shell of an allocation writes beside the run folder.
func (s *scene) read(suffix string) string {
	s.Helper()
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if text, _ := os.ReadFile(s.run + suffix); strings.HasSuffix(string(text), "\n") {
			return strings.TrimSpace(string(text))
		}
	}
	s.Fatalf("there is no %s%s", s.run, suffix)
	return ""
}

// steps returns the steps of a job that Slurm considers running.
func steps(t *testing.T, id string) string {
	t.Helper()
	out, err := slurm.run(nil, "squeue", "--noheader", "--steps", "--format=%i %j")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.Lines(out) {
		if number, _, _ := strings.Cut(line, "."); strings.TrimSpace(number) == id {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return strings.Join(list, ", ")
}
