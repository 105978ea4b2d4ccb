//go:build mpi

package ranks

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
	"siafu/ranks/runfolder"
)

// output is the text of a process, which a test may read while it runs.
type output struct{ path string }

// startWith starts a process whose output goes to a file.
func startWith(t *testing.T, cmd *exec.Cmd) output {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return output{f.Name()}
}

func (o output) String() string {
	text, _ := os.ReadFile(o.path)
	return string(text)
}

// await waits for a condition of a run.
func await(t *testing.T, what string, out output, done func() bool) {
	t.Helper()
	for late := time.Now().Add(hosttest.Patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("no %s\n%s", what, out)
		}
	}
}

// killRank kills the process of a rank that is listed in the run folder.
func killRank(t *testing.T, run string, rank int) {
	t.Helper()
	var inv invitation
	if err := runfolder.ReadInvitation("join", run, &inv); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(inv.Contacts.Ranks[rank].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// A run loses a rank, a process joins and takes the parts of that rank, and the run loses another rank: the one
// that writes its folder. The model has the bytes of a run without losses. Processes that do not fit are
// refused, and the run continues.
func TestJoin(t *testing.T) {
	mpitest.NeedOpenMPI(t, "siafu join")
	t.Parallel()
	siafu, data := program(t), generated(t, true)
	folders := filepath.Join(t.TempDir(), "parts")
	c := quick(t)
	c.PartsDir, c.Parts, c.Ranks, c.Servers, c.Epochs, c.Dropout, c.Hidden, c.Codec = folders, 6, 3, 0, 150, 0.5, 8, "int8"
	want := train(t, c, data)

	run := filepath.Join(t.TempDir(), "run")
	line := strings.Fields("train " + data + " --parts-dir " + folders +
		" --parts 6 --epochs 150 --dropout 0.5 --hidden 8 --codec int8 --servers 0 --survive lost-after=20s --delay *:4ms:1 --out " + run)
	cmd := mpitest.Recovering(mpitest.Mpirun(t, 3, siafu, line...))
	cmd.Env = os.Environ()
	out := startWith(t, cmd)
	ctx, cancel := context.WithTimeout(t.Context(), hosttest.Patience)
	defer cancel()
	logged := func(text string) func() bool { return func() bool { return strings.Contains(out.String(), text) } }
	await(t, "invitation", out, func() bool { return runfolder.ReadInvitation("join", run, new(invitation)) == nil })
	if info, err := os.Stat(filepath.Join(run, "ranks.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	joinUnfit(ctx, t, siafu, run)
	killRank(t, run, 2)
	await(t, "new view", out, logged("view number=1"))
	join := exec.CommandContext(ctx, siafu, "join", run)
	joined := startWith(t, join)
	await(t, "rank that joins", out, logged("view number=2 carriers=[0 0 1 1 3 3]"))
	killRank(t, run, 0)
	if err := join.Wait(); err != nil {
		t.Errorf("%v\n%s", err, joined)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	model, err := os.ReadFile(modelFile(run))
	if err != nil || !bytes.Equal(model, want.model) {
		t.Errorf("model.safetensors differs, %v\n%s\n%s", err, out, joined)
	}
	for _, text := range []string{"refused a process on", "rank 3 on", "has joined", "rank 0 on"} {
		if !logged(text)() {
			t.Errorf("the run does not print %q\n%s", text, out)
		}
	}
	if _, err := os.Stat(filepath.Join(run, "ranks.json")); err == nil {
		t.Error("the secret remains after the run")
	}
	if text, err := exec.CommandContext(ctx, siafu, "join", run).CombinedOutput(); err != nil ||
		!strings.Contains(string(text), "has ended") {
		t.Errorf("%v\n%s", err, text)
	}
}

// joinUnfit joins with another executable, and with another folder.
func joinUnfit(ctx context.Context, t *testing.T, siafu, run string) {
	t.Helper()
	program, err := os.ReadFile(siafu)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "siafu")
	if err := os.WriteFile(other, append(program, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		program, run, says string
		kind               fault.Kind
	}{
		{other, run, "its executable differs", fault.Config},
		{siafu, t.TempDir(), "it is not a run folder", fault.Usage},
	} {
		cmd := exec.CommandContext(ctx, tc.program, "join", tc.run)
		text, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != tc.kind.ExitCode() || !strings.Contains(string(text), tc.says) {
			t.Errorf("exit code %d, want %d\n%s", code, tc.kind.ExitCode(), text)
		}
	}
}
