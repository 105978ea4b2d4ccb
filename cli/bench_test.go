package cli

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// TestBenchIsAnotherProgram: siafu bench becomes siafu-bench with the same arguments,
// process and environment, and names the remedy if there is none.
func TestBenchIsAnotherProgram(t *testing.T) {
	bin, nothing := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho $$ $MINE \"$@\"\nexit 7\n"
	hosttest.Program(t, filepath.Join(bin, benchProgram), script)
	for want, args := range map[string]string{
		"here epoch data --epochs 3 -- --hidden 4": "bench epoch data --epochs 3 -- --hidden 4",
		"here --help-all":                          "bench --help-all",
		"here epoch --help":                        "help bench epoch",
	} {
		cmd := process([]string{"MINE=here", "PATH=" + bin + ":/bin:/usr/bin"}, strings.Fields(args)...)
		out, _ := cmd.CombinedOutput()
		pid, line, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		if line != want || cmd.ProcessState.ExitCode() != 7 || pid != strconv.Itoa(cmd.ProcessState.Pid()) {
			t.Errorf("%s: %v, process %s of %d: %q", args, cmd.ProcessState, pid, cmd.ProcessState.Pid(), line)
		}
	}
	cmd := process([]string{"PATH=" + nothing}, "bench", "epoch")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 78 || !strings.Contains(string(out), `siafu-bench is not installed`) ||
		!strings.Contains(string(out), `"make build"`) {
		t.Errorf("%v: %s", cmd.ProcessState, out)
	}
	// Without it, help, completion and the manual page are those of siafu alone.
	for _, args := range []string{"help codec", "completion bash", "man"} {
		cmd := process([]string{"PATH=" + nothing}, strings.Fields(args)...)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "train") ||
			strings.Contains(string(out), "bench epoch") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestBenchUnderLaunch: ranks of one process are those of siafu-bench.
func TestBenchUnderLaunch(t *testing.T) {
	out, err := process(nil, "launch", "--in-process", "-n", "3", "bench", "epoch", small(t), "--epochs", "2").CombinedOutput()
	if err != nil || !strings.Contains(string(out), ", 3 ranks (1 servers)") ||
		!strings.Contains(string(out), "command: siafu bench epoch") {
		t.Errorf("%v\n%s", err, out)
	}
}
