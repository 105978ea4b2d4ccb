package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/ranks/inject"
	"siafu/ranks/runfolder"
)

// If processes claim one run folder concurrently, one trains, and the errors of the others name
// it. The folder may exist before, and --force does not matter.
func TestOneOfManyTrains(t *testing.T) {
	data := small(t)
	const many = 5
	for name, force := range map[string]bool{"absent": false, "absent, forced": true, "a run, forced": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			run, gate := filepath.Join(dir, "run"), filepath.Join(dir, "gate")
			if strings.HasPrefix(name, "a run") {
				must(t, "train", data, "--epochs", "2", "--checkpoint-every", "1e", "--out", run, "--quiet")
			}
			args := []string{"train", data, "--epochs", "30", "--checkpoint-every", "1e", "--out", run, "--quiet"}
			if force {
				args = append(args, "--force")
			}
			// The owner keeps the folder until all others have ended.
			env := []string{fmt.Sprintf("%s=0:eval:20:wait:%s", inject.Variable, gate)}
			said := make([]bytes.Buffer, many)
			codes := make(chan int, many)
			var all sync.WaitGroup
			for i := range many {
				all.Go(func() {
					cmd := process(env, args...)
					cmd.Stderr = &said[i]
					_ = cmd.Run() // the code is looked at
					codes <- cmd.ProcessState.ExitCode()
				})
			}
			for range many - 1 {
				if code := <-codes; code != 64 {
					t.Errorf("exit %d", code)
				}
			}
			if err := os.WriteFile(gate+".go", nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if code := <-codes; code != 0 {
				t.Errorf("the one that trains ends with %d", code)
			}
			all.Wait()
			refused := 0
			for i := range said {
				refused += strings.Count(said[i].String(), "writing it")
			}
			r, err := runfolder.Read(run)
			if err != nil || len(r.Epochs) != 30 || refused != many-1 {
				for i := range said {
					t.Log(said[i].String())
				}
				t.Fatalf("%d refused, %v", refused, err)
			}
			for i, e := range r.Epochs {
				if e.Epoch != i+1 {
					t.Errorf("line %d is of epoch %d", i+1, e.Epoch)
				}
			}
		})
	}
}

// After an attempt dies at any time, the next one applies the requested flags exactly once:
// --force replaces the earlier run, but never an attempt's training; --resume continues from
// the named run, and later from the attempt. Each moment occurs with two of the four requests, or
// with all with SIAFU_BIG=1.
func TestRestartKnowsItsFolder(t *testing.T) {
	data := small(t)
	model := func(run string) []byte {
		b, err := os.ReadFile(filepath.Join(run, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	fresh, longer := filepath.Join(t.TempDir(), "fresh"), filepath.Join(t.TempDir(), "longer")
	common := []string{"--epochs", "8", "--checkpoint-every", "3e", "--seed", "7"}
	must(t, append([]string{"train", data, "--out", fresh, "--quiet"}, common...)...)
	must(t, "train", data, "--epochs", "4", "--checkpoint-every", "2e", "--out", longer, "--seed", "7", "--quiet")
	for m, moment := range []string{"start:0", "opened:0", "eval:2", "eval:8", "save state.json:7", "finish:0", "summary:0"} {
		for i, tc := range []struct {
			name string
			old  bool // another run is there, that has ended
			args []string
		}{
			{"nothing", false, nil},
			{"forced", true, []string{"--force"}},
			{"from another", false, []string{"--resume", longer}},
			{"forced, from another", true, []string{"--force", "--resume", longer}},
		} {
			if !hosttest.Sampled(2, m, i) {
				continue
			}
			t.Run(moment+" "+tc.name, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				run := filepath.Join(dir, "run")
				id := ""
				if tc.old {
					must(t, "train", data, "--epochs", "9", "--out", run, "--seed", "3", "--quiet")
					id = runfolder.ReadMarker(run).ID
				}
				line := append([]string{"launch", "--in-process", "-n", "1", "--backoff", "1ms", "train", data, "--out", run}, common...)
				mark := filepath.Join(dir, "mark")
				out, err := process([]string{fmt.Sprintf("%s=0:%s:kill:%s", inject.Variable, moment, mark)},
					append(line, tc.args...)...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				if _, err := os.Stat(mark); err != nil {
					t.Fatalf("it never comes to that\n%s", out)
				}
				if m := runfolder.ReadMarker(run); m == nil || m.ID == id {
					t.Errorf("the folder is still that of the old run\n%s", out)
				}
				if !bytes.Equal(model(run), model(fresh)) {
					t.Errorf("another model than that of an undisturbed run\n%s", out)
				}
				resumed := bytes.Contains(out, []byte("resume epoch=")) && bytes.Contains(out, []byte("from="+run))
				if late := !slices.Contains([]string{"start:0", "opened:0", "eval:2"}, moment); late && !resumed {
					t.Errorf("what was trained is trained again\n%s", out)
				}
			})
		}
	}
}

// All starts of a batch script have the same launch id. The first one applies --force, and the
// others continue in its folder.
func TestScriptForcesOnce(t *testing.T) {
	data, run := small(t), filepath.Join(t.TempDir(), "run")
	must(t, "train", data, "--epochs", "9", "--out", run, "--quiet")
	id := runfolder.ReadMarker(run).ID
	start := func(epochs string) string {
		out, err := process([]string{runfolder.LaunchVariable + "=" + strings.Repeat("a", 32)},
			"launch", "--in-process", "-n", "1", "train", data, "--out", run, "--epochs", epochs, "--checkpoint-every",
			"2e", "--force").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	start("4")
	made := runfolder.ReadMarker(run).ID
	if made == id {
		t.Error("the old run is still there")
	}
	if out := start("6"); !strings.Contains(out, "resume epoch=4") || runfolder.ReadMarker(run).ID != made {
		t.Errorf("it is trained again\n%s", out)
	}
	if out := start("6"); !strings.Contains(out, "has already ended") {
		t.Errorf("it has not ended\n%s", out)
	}
}
