package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
)

// fakeSiafu reports the GPUs in $CUDA, and logs its arguments.
const fakeSiafu = `#!/bin/bash
echo "$*" >> calls
case $1 in
doctor) echo "tensor cuda=$CUDA: a reason" ;;
generate) mkdir -p "$2"; touch "$2/meta.json" ;;
bench) echo "a table"; exit "${FAILS:-0}" ;;
esac
`

// fakeSanitizer finds something with the tool that $FINDS says, and else runs the command.
const fakeSanitizer = `#!/bin/bash
echo "sanitizer $2" >> calls
[ "$2" = "${FINDS:-}" ] && exit 9
while [ "$1" != ./siafu ]; do shift; done
"$@"
`

// The folder for a host with a GPU: without one it says so and exits as siafu does;
// kernels are looked at before they are measured, and a finding is the end; the graph is
// generated once; a measurement that fails is the script's failure.
func TestBenchCUDAFolder(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash on this machine")
	}
	const train, measure = "train small --tensor cuda", "bench cuda reddit-0.5 --epochs 0"
	for name, c := range map[string]struct {
		env       []string
		sanitizer bool
		code      int
		says      string
		calls     map[string]int
	}{
		"no GPU": {[]string{"CUDA=false"}, true, 78, "no GPU is measured here",
			map[string]int{"generate": 0, "bench": 0, "sanitizer": 0}},
		"no sanitizer": {[]string{"CUDA=true"}, false, 0, "compute-sanitizer is not installed",
			map[string]int{train: 0, "generate reddit-0.5 --like reddit-small --scale 0.5": 1, measure: 2}},
		"all": {[]string{"CUDA=true"}, true, 0, "a table",
			map[string]int{"sanitizer": 16, train: 16, "generate small": 1, "generate reddit": 1, measure: 2}},
		"a finding": {[]string{"CUDA=true", "FINDS=initcheck"}, true, 9, "tool=initcheck model=gcn gather=bf16 exit=9",
			map[string]int{"sanitizer": 10, train: 8, measure: 0}},
		"only sanitizer": {[]string{"CUDA=true", "SANITIZE=only"}, true, 0, "tool=synccheck model=gat",
			map[string]int{"sanitizer": 16, measure: 0}},
		"fails": {[]string{"CUDA=true", "SANITIZE=0", "FAILS=1"}, true, 1, "a table", map[string]int{"sanitizer": 0, measure: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, bin := t.TempDir(), t.TempDir()
			run, err := os.ReadFile("bench/cuda/run")
			if err != nil {
				t.Fatal(err)
			}
			files := map[string]string{filepath.Join(dir, "run"): string(run), filepath.Join(dir, "siafu"): fakeSiafu}
			if c.sanitizer {
				files[filepath.Join(bin, "compute-sanitizer")] = fakeSanitizer
			}
			for path, text := range files {
				hosttest.Program(t, path, text)
			}
			for range 2 {
				cmd := exec.Command(filepath.Join(dir, "run"), "--scale", "0.5", "--epochs", "0")
				cmd.Env = append(c.env, "PATH="+bin+":/usr/bin:/bin")
				out, _ := cmd.CombinedOutput()
				if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.says) {
					t.Errorf("exit %d\n%s", code, out)
				}
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			for call, count := range c.calls {
				if got := strings.Count("\n"+string(calls), "\n"+call); got != count {
					t.Errorf("%q %d times, not %d:\n%s", call, got, count, calls)
				}
			}
		})
	}
}
