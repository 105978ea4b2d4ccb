//go:build mpi

package ranks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
	"siafu/ranks/inject"
)

// loss is a rank that is killed or stopped at a moment of a run on 3 graph ranks, servers and spares.
type loss struct {
	servers, spares int
	fault           string
	flags           string
}

// losses returns the losses of a test. All moments and ranks are in it with SIAFU_BIG=1.
func losses() []loss {
	list := []loss{
		{0, 1, "0:GA:4:kill", "--refresh previous:none"},
		{1, 0, "5:gradient:3:kill", "--codec int8"}, // the server
	}
	if !hosttest.Big() {
		return list
	}
	list = append(list, loss{1, 0, "1:∇AV:5:kill", ""}, loss{0, 0, "2:AV:4:stop", ""})
	for _, moment := range []string{"AV", "SC", "GA", "loss", "∇AV", "∇GA", "∇SC", "WU", "eval", "start", "finish"} {
		for part := range 5 {
			for _, kind := range []string{"kill", "stop"} {
				list = append(list, loss{part % 2, (part + 1) % 2, fmt.Sprintf("%d:%s:4:%s", part, moment, kind), ""})
			}
		}
	}
	for _, moment := range []string{"opened", "save", "save state.json", "save rename", "summary"} {
		list = append(list, loss{0, 1, "0:" + moment + ":4:kill", "--checkpoint-every 2e"},
			loss{1, 0, "0:" + moment + ":4:stop", "--checkpoint-every 2e"})
	}
	for _, moment := range []string{"pull", "fetch", "gradient", "state", "close"} {
		list = append(list, loss{1, 0, "5:" + moment + ":4:kill", ""}, loss{2, 1, "6:" + moment + ":4:stop", ""})
	}
	return list
}

// A run continues after the loss of any rank in any task, and leaves the bytes of a run without losses.
func TestSurvivesLosses(t *testing.T) {
	mpitest.NeedOpenMPI(t, "--survive")
	t.Parallel()
	siafu, data := program(t), generated(t, true)
	folders := filepath.Join(t.TempDir(), "parts")
	run := func(t *testing.T, l loss, fault string) ([]byte, string) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "run")
		line := strings.Fields("train " + data + " --parts-dir " + folders +
			" --parts 5 --epochs 8 --dropout 0.5 --hidden 8 --survive lost-after=2s --out " + out + " " + l.flags)
		line = append(line, "--servers", fmt.Sprint(l.servers), "--survive", fmt.Sprintf("spares=%d", l.spares))
		cmd := mpitest.Recovering(mpitest.Mpirun(t, 3+l.servers+l.spares, siafu, line...))
		cmd.Env = os.Environ()
		if fault != "" {
			cmd.Env = append(cmd.Env, inject.Variable+"="+fault+":"+filepath.Join(t.TempDir(), "mark"))
		}
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		model, err := os.ReadFile(modelFile(out))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return model, string(text)
	}
	want := map[string][]byte{}
	for _, l := range losses() {
		key := fmt.Sprint(l.servers, l.flags)
		if want[key] == nil {
			want[key], _ = run(t, l, "")
		}
		t.Run(fmt.Sprint(l.fault, ", servers=", l.servers, ", spares=", l.spares, " ", l.flags), func(t *testing.T) {
			got, text := run(t, l, l.fault)
			if !bytes.Equal(got, want[key]) {
				t.Errorf("model.safetensors differs\n%s", text)
			}
			if !strings.Contains(text, " is lost") {
				t.Errorf("no rank was lost\n%s", text)
			}
		})
	}
}

// A launcher that ends all ranks when one ends is refused before any work.
func TestSurvivalNeedsRecovery(t *testing.T) {
	mpitest.NeedOpenMPI4(t, "the refusal of mpirun without recovery")
	siafu, data := program(t), generated(t, false)
	cmd := mpitest.Mpirun(t, 2, siafu, "train", data, "--survive", "--out", filepath.Join(t.TempDir(), "run"))
	text, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != fault.Config.ExitCode() || strings.Count(string(text), "siafu:") != 1 ||
		!strings.Contains(string(text), "use mpirun --enable-recovery, or siafu launch") {
		t.Errorf("exit code %d\n%s", code, text)
	}
}

// A process with a stage of a pipeline is killed in the middle of a step: the process before it continues
// with both stages, and the model has the bytes of a run without a loss.
func TestKilledStageContinuesOnItsShadow(t *testing.T) {
	mpitest.NeedOpenMPI(t, "--survive")
	t.Parallel()
	siafu, data := program(t), generated(t, true)
	run := func(t *testing.T, fault string) ([]byte, string) {
		t.Helper()
		out := filepath.Join(t.TempDir(), "run")
		line := strings.Fields("train " + data + " --pipeline 3:microbatches=4,redundancy=eflb --batch cluster:16,2 --survive " +
			"--survive lost-after=2s --servers 0 --layers 5 --hidden 8 --residual add --dropout 0.3 --epochs 4 --out " + out)
		cmd := mpitest.Recovering(mpitest.Mpirun(t, 3, siafu, line...))
		cmd.Env = os.Environ()
		if fault != "" {
			cmd.Env = append(cmd.Env, inject.Variable+"="+fault+":"+filepath.Join(t.TempDir(), "mark"))
		}
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		model, err := os.ReadFile(modelFile(out))
		if err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(filepath.Join(out, "log.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return model, string(log)
	}
	want, _ := run(t, "")
	victim := hosttest.Turn(t, 3)
	for i, carriers := range []string{"[2 1 2]", "[0 0 2]", "[0 1 1]"} {
		if !hosttest.Sampled(3, i, -victim) {
			continue // TestStagesContinueOnShadows loses each stage
		}
		victim := i
		t.Run(fmt.Sprint("stage ", victim), func(t *testing.T) {
			got, log := run(t, fmt.Sprintf("%d:∇AV:2:kill", victim))
			if !bytes.Equal(got, want) {
				t.Errorf("model.safetensors differs\n%s", log)
			}
			if !strings.Contains(log, "carriers="+carriers) || !strings.Contains(log, "pipeline resumed_epoch=2 ") {
				t.Errorf("no step was resumed with the carriers %s\n%s", carriers, log)
			}
		})
	}
}
