//go:build mpi

package ranks

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
	"siafu/ranks/trace"
)

// Eight parts on any number of processes leave the bytes of eight graph ranks, and resume from
// a checkpoint on another number. Runs alternate between one server and none; SIAFU_BIG=1 has
// both, and resumes all.
func TestMpirunParts(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := generated(t, true)
	for k, args := range []string{"--model gcn", "--model gat --heads 2", "--model sage --codec int8"} {
		name := strings.Fields(args)[1]
		t.Run(name, func(t *testing.T) {
			c := compared(t, 0.5)
			c.Epochs, c.Ranks, c.Servers = 12, 9, 1
			switch name {
			case "gat":
				c.Model, c.Heads = "gat", 2
			case "sage":
				c.Model, c.Codec = "sage", "int8"
			}
			want := train(t, c, data).model
			out := filepath.Join(t.TempDir(), "run")
			spread := func(n int, more ...string) {
				t.Helper()
				line := strings.Fields("train " + data + " --parts 8 --dropout 0.5 --eval-every 0 --quiet --out " + out + " " + args)
				if text, err := mpitest.Mpirun(t, n, siafu, append(line, more...)...).CombinedOutput(); err != nil {
					t.Fatalf("%d processes: %v\n%s", n, err, text)
				}
			}
			for i, n := range []int{1, 2, 4} {
				for servers := range min(n, 2) {
					if (i == k || n > 1 && servers != (n/2+k)%2) && !hosttest.Big() {
						continue
					}
					spread(n, "--epochs", "12", "--force", "--servers", fmt.Sprint(servers))
					if got := readRun(t, out); !bytes.Equal(got.model, want) {
						t.Errorf("%d processes, %d servers: model.safetensors differs", n, servers)
					}
				}
			}
			if name != "gat" && !hosttest.Big() { // resuming does not depend on the network
				return
			}
			spread(2, "--epochs", "5", "--force", "--checkpoint-every", "5e")
			spread(3, "--epochs", "9", "--resume", "auto")
			spread(4, "--epochs", "12", "--resume", "auto", "--servers", "0")
			if got := readRun(t, out); !bytes.Equal(got.model, want) {
				t.Error("a run that has moved twice: model.safetensors differs")
			}
		})
	}
}

// Bounded asynchrony, a codec that is chosen and a timeline work with parts on
// processes, and too few parts are refused with one sentence.
func TestMpirunPartsOtherwise(t *testing.T) {
	t.Parallel()
	siafu := program(t)
	data := generated(t, true)
	out := filepath.Join(t.TempDir(), "run")
	timeline := filepath.Join(out, "trace.json")
	line := []string{"train", data, "--parts", "5", "--epochs", "12", "--dropout", "0", "--quiet", "--force", "--out", out}
	for name, more := range map[string][]string{
		"async":           {"--mode", "async", "--mode", "staleness=1", "--intervals", "2"},
		"async, a server": {"--mode", "async", "--intervals", "2", "--servers", "1"},
		"chosen codec":    {"--codec", "auto", "--servers", "0"},
		"timeline":        {"--trace", timeline},
	} {
		t.Run(name, func(t *testing.T) {
			if text, err := mpitest.Mpirun(t, 3, siafu, append(line, more...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if r := readRun(t, out); len(r.Epochs) != 12 || r.Summary.Parts != 5 || r.Summary.Ranks != 3 ||
				!(r.Summary.FinalLoss < r.Epochs[0].Loss) {
				t.Errorf("%+v", r.Summary)
			}
			if name != "timeline" {
				return
			}
			if f, err := trace.Read(timeline); err != nil || len(f.Processes) != 6 {
				t.Errorf("%v", err)
			}
		})
	}
	text, err := mpitest.Mpirun(t, 4, siafu, "train", data, "--parts", "2").CombinedOutput()
	if err == nil || strings.Count(string(text), "--parts=2 for 3 graph ranks") != 1 {
		t.Errorf("%v\n%s", err, text)
	}
}

// Parts that move between processes change no bit, between two epochs and in the middle of
// one. Each fault is tested with one network; with SIAFU_BIG=1 with all.
func TestMpirunPartsMove(t *testing.T) {
	siafu := program(t)
	data := generated(t, true)
	turn := hosttest.Turn(t, 8)
	for k, args := range []string{
		"--servers 1",
		"--model gat --heads 2 --mode nopipe --servers 0",
		"--model sage --refresh previous --codec int4+ef --servers 0",
		"--hidden 64 --servers 1",
	} {
		if !hosttest.Sampled(2, k, turn/4) {
			continue
		}
		t.Run(args, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "run")
			line := strings.Fields("train " + data + " --parts 7 --layers 3 --dropout 0.5 --epochs 12 --force --out " + out + " " + args)
			run := func() trained {
				t.Helper()
				if text, err := mpitest.Mpirun(t, 4, siafu, line...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				return readRun(t, out)
			}
			want := run()
			for i, fault := range []string{"3:GA:3:move", "4:GA:5:end", "3:∇AV:5:end", "6:AV:1:end"} {
				if !hosttest.Sampled(4, i, k, turn) {
					continue
				}
				strikes(t, fault)
				got := run()
				sameLosses(t, fault, got.losses(), want.losses(), 0)
				if said := got.views(t, out); !bytes.Equal(got.model, want.model) || len(said) != 1 {
					t.Errorf("%s: the models are equal: %t; the log says %q", fault, bytes.Equal(got.model, want.model), said)
				}
			}
		})
	}
}
