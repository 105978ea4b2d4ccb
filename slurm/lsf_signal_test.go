//go:build mpi

package slurm

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
)

// LSF sends the signals of a job to all its processes. Real training under the script of LSF, with a stand-in for
// brequeue, stops at USR1, is queued again, and learns what it would have learnt.
func TestSignalsOfLSF(t *testing.T) {
	if _, err := exec.LookPath(mpitest.Launcher()); err != nil {
		t.Skipf("no %s on this machine", mpitest.Launcher())
	}
	lesson := newLesson(t)
	dir := t.TempDir()
	hosttest.Program(t, filepath.Join(dir, "brequeue"), "#!/bin/sh\necho $1 >"+dir+"/again\n")
	s := &scene{T: t, run: filepath.Join(dir, "run")}
	j := plainJob()
	j.Scheduler, j.Self, j.Run, j.CPUsPerTask, j.Launcher = "lsf", lesson.siafu, s.run, 1, "mpirun"
	j.Train = append(lesson.flags(), "--delay", "*:50ms:1")
	start := func() *exec.Cmd {
		cmd := exec.Command("bash", "-c", j.Script())
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "LSB_JOBID=7"+filepath.Base(filepath.Dir(dir)), "LSB_JOBINDEX=0",
			"LSB_MCPU_HOSTS=localhost 4", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	job := start()
	for deadline := time.Now().Add(hosttest.Patience); ; time.Sleep(50 * time.Millisecond) {
		if text, _ := os.ReadFile(filepath.Join(s.run, "metrics.jsonl")); len(text) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("training does not start: %s", s.log())
		}
	}
	// The script, siafu launch, mpirun and four ranks.
	if n := signalWhere(syscall.SIGUSR1, "LSB_JOBID=7"+filepath.Base(filepath.Dir(dir))); n < 6 {
		t.Errorf("%d processes have received the signal", n)
	}
	if _ = job.Wait(); job.ProcessState.ExitCode() != 75 {
		t.Fatalf("exit code %d: %s", job.ProcessState.ExitCode(), s.log())
	}
	if text, err := os.ReadFile(dir + "/again"); err != nil || len(text) == 0 {
		t.Errorf("it is not queued again: %v", err)
	}
	if job = start(); job.Wait() != nil {
		t.Fatalf("%v: %s", job.ProcessState, s.log())
	}
	lesson.learnt(s, s.run)
}
