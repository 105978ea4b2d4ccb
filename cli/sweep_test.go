package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// sweepOf runs a sweep as a process.
func sweepOf(t *testing.T, args ...string) (int, string) {
	t.Helper()
	out, err := process(nil, append([]string{"sweep"}, args...)...).CombinedOutput()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatal(err)
	}
	if exited != nil {
		return exited.ExitCode(), string(out)
	}
	return 0, string(out)
}

// A sweep trains each combination, names the one that fails, and trains none again that
// has ended.
func TestSweep(t *testing.T) {
	data, dir := small(t), filepath.Join(t.TempDir(), "grid")
	args := []string{"--out", dir, "--html", dir + ".html", data, "--seed=1..2", "--lr", "0.01,1e30", "--",
		"--epochs", "8", "--hidden", "4"}
	var ended time.Time
	for range 2 {
		code, text := sweepOf(t, args...)
		if code != 76 || !strings.Contains(text, "failed seed=2 lr=1e30: ") || !strings.Contains(text, "2 of 4 trainings failed") ||
			!strings.Contains(text, "runs  lr ") {
			t.Fatalf("exit %d\n%s", code, text)
		}
		info, err := os.Stat(filepath.Join(dir, "seed=1,lr=0.01", "summary.json"))
		if err != nil || !ended.IsZero() && !info.ModTime().Equal(ended) {
			t.Errorf("%v: it was trained again", err)
		}
		ended = info.ModTime()
	}
	if _, err := os.Stat(dir + ".html"); err != nil {
		t.Error(err)
	}
}

// An interrupted sweep saves its state, and the same command continues from it.
func TestSweepInterrupted(t *testing.T) {
	data, dir := small(t), filepath.Join(t.TempDir(), "grid")
	args := []string{"sweep", "--out", dir, data, "--seed", "1,2", "--", "--epochs", "1500", "--hidden", "4", "--threads", "1"}
	cmd := process(nil, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(dir, "seed=1")
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if info, err := os.Stat(filepath.Join(first, "metrics.jsonl")); err == nil && info.Size() > 0 {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 75 {
		t.Fatal(cmd.ProcessState)
	}
	checkSaved(t, first)
	if code, text := sweepOf(t, args[1:]...); code != 0 || !strings.Contains(text, "\n2     1500 ") {
		t.Errorf("exit %d\n%s", code, text)
	}
	log, err := os.ReadFile(filepath.Join(first, "log.txt"))
	if err != nil || !strings.Contains(string(log), "\nresume epoch=") {
		t.Errorf("%v: it has begun again\n%s", err, log)
	}
}

// Invalid grids are refused, and --dry-run prints the commands.
func TestSweepUsage(t *testing.T) {
	data := small(t)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{data}, "lists of values"},
		{[]string{"--seed", "1"}, ""},
		{[]string{data, "--seed", "1/2"}, "--seed=1/2"},
		{[]string{data, "--seed", "1", "--seed", "2"}, "is given twice"},
		{[]string{data, "--seed", "1", "--force=true"}, "after --"},
		{[]string{data, "--sed", "1..2"}, "--sed"},
		{[]string{data, "--seed", "a,b"}, `"a"`},
		{[]string{filepath.Join(data, "none"), "--seed"}, "--seed="},
	} {
		if r := siafu(append([]string{"sweep"}, tc.args...)...); r.code != 64 || !strings.Contains(r.err, tc.want) {
			t.Errorf("%q: exit %d: %s", tc.args, r.code, r.err)
		}
	}
	out := must(t, "sweep", "--dry-run", "--launch", "3", "a b", "--seed", "1..2", "--", "--hidden", "8")
	if lines := strings.Split(out, "\n"); len(lines) != 3 ||
		!strings.HasSuffix(lines[1], "launch --ranks 3 train 'a b' --hidden 8 --seed=2 --out 'runs/a b-sweep/seed=2' --resume auto") {
		t.Error(out)
	}
	t.Chdir(t.TempDir())
	out = must(t, "sweep", "--slurm=--dry-run --nodes 2", data, "--seed", "1..2", "--", "--hidden", "8")
	if !strings.Contains(out, "\t\"seed=1\"\n\t\"seed=2\"\n") || !strings.Contains(out, " --hidden 8 ") {
		t.Error(out)
	}
}

// TestSweepFlagsOnBothSides: flags of sweep are recognised before and after DATA, joined to
// their values or not.
func TestSweepFlagsOnBothSides(t *testing.T) {
	data, dir := small(t), filepath.Join(t.TempDir(), "grid")
	want := must(t, "sweep", "--dry-run", "--out", dir, data, "--seed", "1,2", "--recipe", "gat-cora", "--", "--epochs", "1")
	if strings.Count(want, "\n") != 2 || !strings.Contains(want, "grid/seed=2,recipe=gat-cora") || !strings.Contains(want, "--epochs 1") {
		t.Fatalf("flags in front:\n%s", want)
	}
	for _, args := range [][]string{
		{data, "--seed", "1,2", "--recipe", "gat-cora", "--dry-run", "--out", dir},
		{data, "--out=" + dir, "--seed=1,2", "--dry-run", "--recipe=gat-cora"},
		{"--out", dir, data, "--seed", "1,2", "--recipe", "gat-cora", "--dry-run"},
	} {
		if got := must(t, append(append([]string{"sweep"}, args...), "--", "--epochs", "1")...); got != want {
			t.Errorf("%q prints\n%swant\n%s", args, got, want)
		}
	}
	script := must(t, "sweep", data, "--seed", "1,2", "--slurm", "--dry-run --nodes 2", "--out", dir)
	if !strings.Contains(script, "\t\"seed=1\"\n\t\"seed=2\"\n") {
		t.Errorf("no script of an array:\n%s", script)
	}
}
