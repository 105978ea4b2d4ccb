//go:build mpi

package faulttest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// If mpirun is killed, its ranks end, also stopped ones, and the run restarts. If siafu launch is
// killed, all processes end long before the wait limits of the ranks.
func TestLauncherKilled(t *testing.T) {
	stage := newStage(t)
	for _, kind := range []string{"wait", "stop"} {
		x := scene{kind: kind, rank: 1, mode: "pipe", moment: "GA", epoch: 8}
		t.Run("mpirun, rank 1 in "+kind, func(t *testing.T) {
			t.Parallel()
			run, j := stage.begin(t, x)
			_ = syscall.Kill(j.find(t, "mpirun", "prterun", "mpiexec.hydra"), syscall.SIGKILL)
			j.wait(t)
			if j.code != 0 {
				t.Fatalf("exit %d\n%s", j.code, j.text())
			}
			stage.whole(t, x, run, j)
		})
		t.Run("siafu launch, rank 1 in "+kind, func(t *testing.T) {
			t.Parallel()
			_, j := stage.begin(t, x, "--stall-abort", "10m")
			_ = j.cmd.Process.Kill()
			j.wait(t)
		})
	}
}

// begin starts a run and waits for its moment, and for a rank that stops to have
// stopped: the kernel continues and ends it when mpirun ends, but nothing ends a
// process that stops itself after that.
func (s *stage) begin(t *testing.T, x scene, more ...string) (run string, j *job) {
	t.Helper()
	run = filepath.Join(t.TempDir(), "run")
	j = s.launch(t, x, run, filepath.Join(t.TempDir(), "mark"), more...)
	await(t, j)
	if x.kind == "stop" {
		awaitStopped(t, j.rank(t, x.rank))
	}
	return run, j
}

// awaitStopped waits until a signal has stopped a process.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if bytes.Contains(stat, []byte(") T ")) {
			return
		}
	}
	t.Fatalf("process %d does not stop", pid)
}

// find returns the process of the job that executes a program.
func (j *job) find(t *testing.T, programs ...string) int {
	t.Helper()
	for _, pid := range j.processes() {
		line, _ := os.ReadFile("/proc/" + pid + "/cmdline") // it may have ended
		if first, _, _ := bytes.Cut(line, []byte{0}); slices.Contains(programs, filepath.Base(string(first))) {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	j.wait(t)
	t.Fatalf("there is no %s\n%s", programs, j.text())
	return 0
}

// Rank 0 is killed while it divides the dataset: nothing half divided is left
// for those who come, and beside it nothing hidden.
func TestKilledWhilePartitioning(t *testing.T) {
	s := newStage(t)
	s.data = filepath.Join(t.TempDir(), "data")
	s.must(t, "generate", s.data, "--vertices", "60000", "--edges", "600000", "--features", "64", "--classes", "4")
	run := filepath.Join(t.TempDir(), "run")
	j := start(t, run, exec.Command(s.siafu, append([]string{"launch", "-n", fmt.Sprint(size), "--restarts", "2", "--backoff", "100ms"},
		s.train("pipe", run)...)...), "SIAFU_TEST_RUN="+run)
	hidden := filepath.Join(s.data, "parts", ".*.tmp-*")
	for deadline := time.Now().Add(hosttest.Patience); ; time.Sleep(200 * time.Microsecond) {
		if found, _ := filepath.Glob(hidden); found != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the dataset is not divided")
		}
	}
	_ = syscall.Kill(j.rank(t, 0), syscall.SIGKILL)
	left, _ := filepath.Glob(hidden)
	if j.wait(t); j.code != 0 {
		t.Fatalf("exit %d\n%s", j.code, j.text())
	}
	if left == nil {
		t.Error("it was killed too late")
	}
	if left, _ = filepath.Glob(filepath.Join(s.data, "parts", ".*")); left != nil {
		t.Errorf("left behind: %s", left)
	}
	j.namesRank(t, scene{kind: "kill"})
	if n := strings.Count(j.text(), "\npartition parts=2 "); n != 2 {
		t.Errorf("it was divided %d times\n%s", n, j.text())
	}
}

// rank returns the process of a rank.
func (j *job) rank(t *testing.T, rank int) int {
	t.Helper()
	for _, pid := range j.processes() {
		env, _ := os.ReadFile("/proc/" + pid + "/environ") // it may have ended
		if regexp.MustCompile(fmt.Sprintf("\x00(OMPI_COMM_WORLD|PMI)_RANK=%d\x00", rank)).Match(env) {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	t.Fatalf("there is no rank %d", rank)
	return 0
}
