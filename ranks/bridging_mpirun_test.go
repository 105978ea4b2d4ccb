//go:build mpi

package ranks

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/functiontest"
	"siafu/internal/testkit/mpitest"
	"siafu/ranks/inject"
)

// Processes with one bridge or two have the bits of training on the CPU, also if a bridge is
// killed and restarted with the others. They end together if the function is missing.
func TestMpirunBridges(t *testing.T) {
	t.Parallel()
	siafu, function := program(t), functiontest.Build(t)
	data, out := generated(t, true), filepath.Join(t.TempDir(), "run")
	c := quick(t)
	c.Epochs, c.Ranks, c.Servers, c.Intervals, c.EvalEvery = 6, 3, 1, 2, 0
	want := train(t, c, data).model
	line := func(bridges int, function string) []string {
		return strings.Fields(fmt.Sprintf("train %s --tensor lambda --lambda local:function=%s,bridges=%d --servers 1 "+
			"--intervals 2 --epochs 6 --eval-every 0 --checkpoint-every 2e --force --quiet --out %s",
			data, function, bridges, out))
	}
	same := func(what string) {
		t.Helper()
		got := readRun(t, out)
		if !bytes.Equal(got.model, want) {
			t.Errorf("%s: model.safetensors differs", what)
		}
		if got.Summary.Bridges == 0 || got.Summary.LambdaInvocations == 0 || got.Summary.PerRank[3].Role != "bridge" {
			t.Errorf("%s: %+v", what, got.Summary)
		}
	}
	if text, err := mpitest.Mpirun(t, 5, siafu, line(2, function)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	same("two bridges")
	mark := filepath.Join(t.TempDir(), "struck")
	cmd := exec.Command(siafu, append([]string{"launch", "-n", "4", "--backoff", "100ms"}, line(1, function)...)...)
	cmd.Env = append(os.Environ(), inject.Variable+"=3:task:4:kill:"+mark)
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("the bridge was not killed: %v", err)
	}
	same("killed and started again")
	text, err = mpitest.Mpirun(t, 4, siafu, line(1, filepath.Join(t.TempDir(), "none"))...).CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); err == nil || code != 0 || !strings.Contains(string(text), "the function does not exist") ||
		!strings.Contains(string(text)+err.Error(), fmt.Sprint(fault.Missing.ExitCode())) {
		t.Errorf("%v\n%s", err, text)
	}
}
