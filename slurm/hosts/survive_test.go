//go:build mpi

package hosts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
)

// watched is the output of a run. It can be read while the run writes it.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// await waits until the run has printed a text.
func (w *watched) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(hosttest.Patience); !strings.Contains(w.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in\n%s", text, w)
		}
	}
}

// A run continues after a whole host is cut off, or is lost with its daemon of mpirun, or is cut off for
// a moment. The other hosts write the bytes of a run without losses. The ranks that are cut off end
// alone, with the exit code of a stopped run.
func TestSurvivesTheLossOfAHost(t *testing.T) {
	mpitest.NeedOpenMPI4(t, "surviving a lost host")
	if !hosttest.Big() {
		t.Skip("three hosts and five runs; set SIAFU_BIG=1")
	}
	siafu, _ := hosttest.Programs(t)
	data := filepath.Join(t.TempDir(), "data")
	if _, err := generate.Write(data, generate.Options{Vertices: 400, Edges: 3000, Features: 12, Classes: 4, Seed: 5}, false); err != nil {
		t.Fatal(err)
	}
	parts := filepath.Join(t.TempDir(), "parts")
	var want []byte
	for _, tc := range []struct {
		name  string
		lose  func(h *Hosts, log *watched)
		views int   // after the first
		alone []int // ranks that end alone
	}{
		{"none", func(*Hosts, *watched) {}, 0, nil},
		{"cut", func(h *Hosts, _ *watched) { check(t, h.Cut(2)) }, 1, []int{4, 5}},
		{"first host cut", func(h *Hosts, _ *watched) { check(t, h.Cut(0)) }, 1, []int{0, 1}},
		{"killed", func(h *Hosts, _ *watched) { h.Kill(2) }, 1, nil},
		{"cut and connected", func(h *Hosts, log *watched) {
			check(t, h.Cut(2))
			log.await(t, "view number=1")
			check(t, h.Join(2))
		}, 1, []int{4, 5}},
		{"cut for a moment", func(h *Hosts, _ *watched) {
			check(t, h.Cut(1))
			time.Sleep(300 * time.Millisecond)
			check(t, h.Join(1))
		}, 0, nil},
	} {
		ok := t.Run(tc.name, func(t *testing.T) {
			h := open(t, 3)
			list, err := h.Hostfile(2)
			check(t, err)
			out, codes := filepath.Join(t.TempDir(), "run"), t.TempDir()
			program := filepath.Join(t.TempDir(), "siafu")
			script := fmt.Sprintf("#!/bin/sh\n%s \"$@\"\ncode=$?\necho $code > %s/$OMPI_COMM_WORLD_RANK\nexit $code\n", siafu, codes)
			check(t, os.WriteFile(program, []byte(script), 0o700))
			line := fmt.Sprintf("launch -n 6 --hostfile %s --program %s --restarts 0 train %s --parts 6 --parts-dir %s --servers 0 "+
				"--epochs 50 --hidden 8 --recompute-ghosts none --survive lost-after=2s --delay *:40ms:1 --eval-every 40 --out %s",
				list, program, data, parts, out)
			cmd := exec.CommandContext(t.Context(), siafu, strings.Fields(line)...)
			log := new(watched)
			cmd.Stdout, cmd.Stderr = log, log
			cmd.Env = append(os.Environ(), h.Environment()...)
			check(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			log.await(t, "epoch=1/")
			time.Sleep(time.Second) // some epochs
			tc.lose(h, log)
			select {
			case err = <-ended:
			case <-time.After(hosttest.Patience):
				_ = cmd.Process.Kill()
				<-ended
				err = fault.New(fault.Runtime, op, "", "the run does not end")
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, log)
			}
			model, err := os.ReadFile(filepath.Join(out, "model.safetensors"))
			check(t, err)
			if want == nil {
				want = model
			}
			if !bytes.Equal(model, want) {
				t.Errorf("model.safetensors differs\n%s", log)
			}
			if n := strings.Count(log.String(), "view number="); n != tc.views {
				t.Errorf("%d views, want %d\n%s", n, tc.views, log)
			}
			for _, rank := range tc.alone {
				code, err := os.ReadFile(filepath.Join(codes, fmt.Sprint(rank)))
				if got := strings.TrimSpace(string(code)); err != nil || got != fmt.Sprint(fault.Stopped.ExitCode()) {
					t.Errorf("rank %d: exit code %q, %v\n%s", rank, got, err, log)
				}
			}
		})
		if !ok && want == nil {
			return
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
