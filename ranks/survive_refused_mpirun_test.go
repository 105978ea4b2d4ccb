//go:build mpi

package ranks

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
	"siafu/ranks/inject"
)

// survival is a run under "siafu launch" that survives losses: two graph ranks and a spare one.
type survival struct {
	data, parts, out string
	launch, env      []string
}

func newSurvival(t *testing.T) *survival {
	mpitest.Mpirun(t, 1, "true") // skips the test without mpirun
	return &survival{data: generated(t, true), parts: filepath.Join(t.TempDir(), "parts"), out: filepath.Join(t.TempDir(), "run")}
}

// run trains and returns the exit code and the output.
func (s *survival) run(t *testing.T, flags ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hosttest.Patience)
	defer cancel()
	line := slices.Concat([]string{"launch", "-n", "3", "--restarts", "0"}, s.launch,
		[]string{"train", s.data, "--parts-dir", s.parts, "--parts", "4", "--servers", "0", "--survive", "spares=1", "--epochs", "8",
			"--hidden", "8", "--out", s.out}, flags)
	cmd := exec.CommandContext(ctx, program(t), line...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = append(os.Environ(), s.env...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

// fails fails the test unless the run ends with an exit code, and with one error that has all words.
func (s *survival) fails(t *testing.T, want fault.Kind, words []string, flags ...string) {
	t.Helper()
	code, text := s.run(t, flags...)
	if code != want.ExitCode() || strings.Contains(text, "MPI_ABORT") {
		t.Errorf("exit code %d, want %d\n%s", code, want.ExitCode(), text)
	}
	said := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "siafu: ") && !strings.HasPrefix(line, "siafu: launch: ") && strings.Contains(line, words[0]) {
			said++
			for _, word := range words {
				if !strings.Contains(line, word) {
					t.Errorf("%q is not in the error\n%s", word, text)
				}
			}
		}
	}
	if said != 1 {
		t.Errorf("the error is printed %d times\n%s", said, text)
	}
}

// After notice, the parts of a rank move to the spare one. The model has the bytes of a run without
// notice.
func TestNoticeMovesParts(t *testing.T) {
	mpitest.NeedOpenMPI(t, "--survive")
	t.Parallel()
	s := newSurvival(t)
	var models [2][]byte
	for k, notice := range []string{"false", "test $OMPI_COMM_WORLD_RANK = 1"} {
		code, text := s.run(t, "--survive", "notice="+notice, "--delay", "*:20ms:1", "--force")
		model, err := os.ReadFile(modelFile(s.out))
		if models[k] = model; code != 0 || err != nil {
			t.Fatalf("exit code %d, %v\n%s", code, err, text)
		}
		if moved := strings.Contains(text, "view number=1 carriers=[0 0 2 2] "); moved != (k == 1) {
			t.Errorf("--survive notice=%q: the parts have moved: %t\n%s", notice, moved, text)
		}
	}
	if !bytes.Equal(models[0], models[1]) {
		t.Error("model.safetensors differs")
	}
}

// A file of zones must name each host. All ranks read it, and one reports the error.
func TestZones(t *testing.T) {
	mpitest.NeedOpenMPI(t, "--survive")
	t.Parallel()
	s := newSurvival(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	zones := filepath.Join(t.TempDir(), "zones")
	for _, line := range []string{host + " a", "elsewhere a"} {
		if err := os.WriteFile(zones, []byte(line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if line == "elsewhere a" {
			s.fails(t, fault.Data, []string{"zones: " + zones, fmt.Sprintf("host %q has no line", host)}, "--survive", "zones="+zones)
		} else if code, text := s.run(t, "--survive", "zones="+zones); code != 0 {
			t.Errorf("exit code %d\n%s", code, text)
		}
	}
}

// A shard that was damaged after the start is found when another rank takes the part over. All ranks end
// with the error.
func TestDamagedShardAtATakeover(t *testing.T) {
	mpitest.NeedOpenMPI(t, "--survive")
	t.Parallel()
	s := newSurvival(t)
	s.env = []string{inject.Variable + "=2:GA:200:kill:" + filepath.Join(t.TempDir(), "mark")}
	shard := filepath.Join(s.parts, "4", "2.part")
	damaged := make(chan error, 1)
	go func() {
		began := filepath.Join(s.out, "metrics.jsonl")
		for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if info, err := os.Stat(began); err == nil && info.Size() > 0 {
				short := shard + ".short" // rank 1 has mapped the old file
				if err := os.WriteFile(short, make([]byte, 1000), 0o644); err != nil {
					damaged <- err
				} else {
					damaged <- os.Rename(short, shard)
				}
				return
			}
		}
		damaged <- fmt.Errorf("no epoch has ended")
	}()
	s.fails(t, fault.Data, []string{shard, "it has 1000 bytes"}, "--epochs", "1000")
	if err := <-damaged; err != nil {
		t.Fatal(err)
	}
}

// mounted mounts a small file system on a folder, or skips the test.
func mounted(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mount: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// All ranks end if the disk is full, also a spare one, which writes nothing.
func TestSurvivalWithAFullDisk(t *testing.T) {
	mpitest.NeedOpenMPI(t, "--survive")
	t.Parallel()
	s := newSurvival(t)
	s.out = filepath.Join(mounted(t, "48k"), "run")
	s.fails(t, fault.IO, []string{"write model: " + modelFile(s.out), "no space left on device"}, "--hidden", "1024")
}

// A shard that a spare rank could not take over later is refused at the start.
func TestUnreadableShards(t *testing.T) {
	mpitest.NeedOpenMPI(t, "--survive")
	t.Parallel()
	s := newSurvival(t)
	if code, text := s.run(t, "--epochs", "1"); code != 0 {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	mounted(t, "4k") // skips the test without the right to mount
	hiding := filepath.Join(t.TempDir(), "siafu")
	script := fmt.Sprintf(`#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 2 ] || exec %[1]s "$@"
exec unshare -m sh -c 'mount -t tmpfs none %[2]s && exec %[1]s "$@"' sh "$@"
`, program(t), s.parts)
	if err := os.WriteFile(hiding, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s.launch = []string{"--program", hiding}
	s.fails(t, fault.Missing, []string{filepath.Join(s.parts, "4", "0.part"), "cannot open it, but may have to take over parts"}, "--force")
}
