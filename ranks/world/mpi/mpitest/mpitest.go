package mpitest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hardLimit ends a run under mpirun that has not ended by itself.
const hardLimit = 2 * time.Minute

// killDelay is what mpirun gets to kill its ranks and tidy up before it is
// killed itself.
const killDelay = 3 * time.Second

// Mpirun returns the command that runs n ranks of a program on this machine, oversubscribed if
// needed. It skips the test without mpirun. The command has two minutes from here on; then
// mpirun and all processes that it started are killed. Environment variables of the command
// reach the ranks.
func Mpirun(t testing.TB, n int, binary string, args ...string) *exec.Cmd {
	t.Helper()
	return MpirunContext(t.Context(), t, n, binary, args...)
}

// MpirunContext is Mpirun that also ends, in the same way, with ctx.
func MpirunContext(ctx context.Context, t testing.TB, n int, binary string, args ...string) *exec.Cmd {
	t.Helper()
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("no mpirun on this machine: install openmpi-bin")
	}
	line := []string{
		"-n", strconv.Itoa(n),
		"--oversubscribe", "--bind-to", "none",
		"--mca", "mpi_yield_when_idle", "1",
		"--mca", "orte_tmpdir_base", sessions(t),
	}
	if os.Geteuid() == 0 {
		line = append(line, "--allow-run-as-root")
	}
	line = append(append(line, binary), args...)
	ctx, cancel := context.WithTimeout(ctx, hardLimit)
	cmd := exec.CommandContext(ctx, mpirun, line...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return end(cmd.Process.Pid) }
	cmd.WaitDelay = killDelay + time.Second
	t.Cleanup(func() {
		if cmd.Process != nil && cmd.ProcessState == nil {
			_ = end(cmd.Process.Pid) // the test ended without waiting
		}
		cancel()
	})
	return cmd
}

// sessions returns a folder for what Open MPI keeps while a job runs. The usual one
// is shared by all jobs of a user, and a job that starts while another one
// tidies up finds it half gone. Its path is short, for the sake of sockets.
func sessions(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mpi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// end asks mpirun to end, and kills it and its ranks if it does not. Ranks
// have process groups of their own, so they are found by their parents.
func end(mpirun int) error {
	all := append(descendants(mpirun), mpirun)
	if err := syscall.Kill(mpirun, syscall.SIGTERM); err != nil {
		return err
	}
	for deadline := time.Now().Add(killDelay); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if !anyAlive(all) {
			return nil
		}
	}
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
	}
	return nil
}

// descendants returns the processes below pid.
func descendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if parent := statField(path, 1); parent != "" {
			p, _ := strconv.Atoi(parent)
			children[p] = append(children[p], child)
		}
	}
	var below []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		below = append(below, children[queue[0]]...)
		queue = append(queue, children[queue[0]]...)
	}
	return below
}

// anyAlive reports whether one of the processes still runs; a zombie does not.
func anyAlive(pids []int) bool {
	for _, pid := range pids {
		state := statField("/proc/"+strconv.Itoa(pid)+"/stat", 0)
		if state != "" && state != "Z" {
			return true
		}
	}
	return false
}

// statField returns the i-th field behind the name in a stat file of a process,
// the state being 0 and the parent 1; empty for a process that has ended.
func statField(path string, i int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	// The name is in parentheses and may contain any characters, even parentheses.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if i >= len(fields) {
		return ""
	}
	return fields[i]
}
