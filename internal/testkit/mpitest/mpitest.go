package mpitest

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// killDelay is the time for mpirun to end its ranks, before all are killed.
const killDelay = 3 * time.Second

// Mpirun returns the command that runs n ranks of a program on this machine, oversubscribed if
// needed. It skips the test without mpirun. After hosttest.Patience, mpirun and its processes are
// killed. The ranks inherit the command's environment variables.
func Mpirun(t testing.TB, n int, binary string, args ...string) *exec.Cmd {
	t.Helper()
	return MpirunContext(t.Context(), t, n, binary, args...)
}

// MpirunContext returns the command of Mpirun. It is killed when ctx is done, too.
func MpirunContext(ctx context.Context, t testing.TB, n int, binary string, args ...string) *exec.Cmd {
	t.Helper()
	mpirun, err := exec.LookPath(Launcher())
	if err != nil {
		t.Skip("no mpirun on this machine: install openmpi-bin")
	}
	line := []string{"-n", strconv.Itoa(n)}
	if OpenMPI() {
		dir := sessions(t)
		line = append(line, "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
			"--mca", "orte_tmpdir_base", dir, "--mca", "prte_tmpdir_base", dir)
		if os.Geteuid() == 0 {
			line = append(line, "--allow-run-as-root")
		}
	}
	line = append(append(line, binary), args...)
	ctx, cancel := context.WithTimeout(ctx, hosttest.Patience)
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

// Recovering makes mpirun continue after the end of a rank.
func Recovering(cmd *exec.Cmd) *exec.Cmd {
	cmd.Args = slices.Insert(cmd.Args, 1, "--enable-recovery")
	return cmd
}

// Running returns the processes with a text on their command line.
func Running(text string) (pids []string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if line, _ := os.ReadFile(path); strings.Contains(string(line), text) { // it may have ended
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// Launcher returns the program that starts ranks: mpirun, or that of the variable SIAFU_MPIRUN, which
// belongs to the MPI of the tests.
func Launcher() string { return cmp.Or(os.Getenv("SIAFU_MPIRUN"), "mpirun") }

// version is what Launcher answers to --version.
var version = sync.OnceValue(func() string {
	answer, _ := exec.Command(Launcher(), "--version").CombinedOutput() // an empty one is of no MPI
	return string(answer)
})

// OpenMPI reports whether Launcher is that of Open MPI.
func OpenMPI() bool {
	return strings.Contains(version(), "(Open MPI)") || strings.Contains(version(), "(OpenRTE)")
}

// PRRTE reports whether Launcher is that of Open MPI 5.
func PRRTE() bool { return strings.Contains(version(), "(Open MPI) 5") }

// NeedOpenMPI4 skips a test of what only the launcher of Open MPI 4 does.
func NeedOpenMPI4(t testing.TB, what string) {
	t.Helper()
	if NeedOpenMPI(t, what); PRRTE() {
		t.Skipf("%s is of Open MPI 4, and ranks are started by that of Open MPI 5", what)
	}
}

// NeedOpenMPI skips a test of what only Open MPI can do.
func NeedOpenMPI(t testing.TB, what string) {
	t.Helper()
	if _, err := exec.LookPath(Launcher()); err == nil && !OpenMPI() {
		t.Skipf("%s needs Open MPI, and these ranks are started by %s", what, Launcher())
	}
}

// sessions returns a folder for Open MPI's files of a job. The default folder is shared by all
// jobs of a user: a job that starts while another one removes its files may fail. The path is
// short, because sockets limit it.
func sessions(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mpi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// end terminates mpirun, and kills it and its ranks after killDelay. Ranks have their own process
// groups, so that they are found by their parents.
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
		_ = syscall.Kill(pid, syscall.SIGKILL) // an error means that it has ended
	}
	return nil
}

// descendants returns all descendants of a process.
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

// anyAlive reports whether one of the processes still runs and is no zombie.
func anyAlive(pids []int) bool {
	for _, pid := range pids {
		state := statField("/proc/"+strconv.Itoa(pid)+"/stat", 0)
		if state != "" && state != "Z" {
			return true
		}
	}
	return false
}

// statField returns the i-th field after the name in the stat file of a process: 0 is the state,
// 1 the parent. It is empty if the process has ended.
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
