//go:build mpi

package cli

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
)

// program builds siafu with the given tags.
func program(t *testing.T, tags string) string {
	t.Helper()
	return hosttest.Go(t, filepath.Join(tags, "siafu"), "siafu", tags)
}

// finish runs a command and returns its exit code and what it printed.
func finish(t *testing.T, cmd *exec.Cmd) (int, string) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatalf("%v\n%s", err, out)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// launcher returns the name of the launcher of the tests in messages.
func launcher() string {
	if mpitest.OpenMPI() {
		return "mpirun"
	}
	return "mpiexec"
}

// An error under mpirun ends all ranks with the exit code of the fault, and is printed once.
func TestBadInputUnderMpirun(t *testing.T) {
	withMPI, without := program(t, "mpi"), program(t, "")
	t.Setenv("CUDA_VISIBLE_DEVICES", "-1") // hides the GPUs of this host
	for _, tc := range []struct {
		name string
		exe  string
		harm func(*scene)
		args []string
		code int
		says string
	}{
		{"ranks given", withMPI, nil, []string{"--ranks", "4"}, 64, "--ranks=4 under " + launcher() + ", which started 3 ranks"},
		{"built without MPI", without, nil, nil, 78, "this build has no MPI"},
		{"dataset damaged", withMPI, func(s *scene) { s.flip(s.path("data", "parts", "2", "1.part")) }, nil, 65, "1.part"},
		{"too many servers", withMPI, nil, []string{"--servers", "2"}, 78, "2 servers in a world of 3 ranks"},
		{"no GPU", withMPI, nil, []string{"--tensor", "cuda"}, 78, "NVIDIA driver"},
		{"usage", withMPI, nil, []string{"--epochs=-3"}, 64, "--epochs=-3"},
		{"unknown flag", withMPI, nil, []string{"--hiden=3"}, 64, "--hidden"},
		{"diverging", withMPI, nil, []string{"--lr", "1e30", "--optimizer", "sgd", "--epochs", "50"}, 76, "lower --lr"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScene(t)
			if tc.harm != nil {
				tc.harm(s)
			}
			args := append([]string{"train", s.data, "--out", filepath.Join(s.free, "run"), "--epochs", "2"}, tc.args...)
			start := time.Now()
			code, text := finish(t, mpitest.Mpirun(t, 3, tc.exe, args...))
			if code != tc.code || !strings.Contains(text, tc.says) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, tc.code, tc.says, text)
			}
			if strings.Count(text, tc.says) > 1 {
				t.Errorf("it is said more than once:\n%s", text)
			}
			if d := time.Since(start); d > hosttest.Patience/2 {
				t.Errorf("it took %v to end", d)
			}
		})
	}
}

// Doctor speaks once for all ranks, and of the links between them.
func TestDoctorUnderMpirun(t *testing.T) {
	code, text := finish(t, mpitest.Mpirun(t, 3, program(t, "mpi"), "doctor"))
	for _, want := range []string{"launcher name=" + launcher() + " ranks=3 hosts=1", "\nrank=2 host=", "\nlink a=1 b=2 latency_us=", "slowest_link "} {
		if strings.Count(text, want) != 1 || code != 0 {
			t.Errorf("exit %d, it does not say %q once:\n%s", code, want, text)
		}
	}
}

// inTraining returns a shell script through which ranks start the program of their arguments. One
// of them gets a signal once the run has trained epochs, however long that takes.
func (s *scene) inTraining(victim, signal string) string {
	return `if [ "${OMPI_COMM_WORLD_RANK-$PMI_RANK}" = ` + victim + ` ]; then ` +
		`(until [ -s "` + filepath.Join(s.free, "run",
		"metrics.jsonl") + `" ]; do sleep 0.1; done; kill -` + signal + ` $$) & fi; exec "$@"`
}

// A killed rank of any role ends the job within seconds.
func TestDeadRank(t *testing.T) {
	siafu := program(t, "mpi")
	for _, victim := range []string{"0", "1", "3"} {
		t.Run("rank "+victim, func(t *testing.T) {
			s := newScene(t)
			cmd := mpitest.Mpirun(t, 4, "/bin/sh", "-c", s.inTraining(victim, "KILL"), "sh",
				siafu, "train", s.data, "--epochs", "10000000", "--out", filepath.Join(s.free, "run"), "--quiet")
			start := time.Now()
			code, text := finish(t, cmd)
			if code == 0 || time.Since(start) > hosttest.Patience/2 {
				t.Errorf("exit %d after %v:\n%s", code, time.Since(start), text)
			}
			if !strings.Contains(text, "rank "+victim) && mpitest.OpenMPI() {
				t.Errorf("nobody names rank %s:\n%s", victim, text)
			}
			if left := mpitest.Running(s.free); len(left) > 0 {
				t.Errorf("processes are left: %s", left)
			}
		})
	}
}

// The terminal of a launcher is closed in the middle of long epochs: the ranks
// hear of it, and what they say before they save does not end them.
func TestClosedTerminalOfLauncher(t *testing.T) {
	siafu := program(t, "mpi")
	for _, how := range []string{"--in-process", "--launcher=mpirun"} {
		t.Run(how, func(t *testing.T) {
			if _, err := exec.LookPath("mpirun"); err != nil && how != "--in-process" {
				t.Skip("no mpirun on this machine: install openmpi-bin")
			}
			data, out := small(t), filepath.Join(t.TempDir(), "run")
			cmd := exec.CommandContext(t.Context(), siafu, "launch", how, "-n", "2", "train", data, "--servers", "0", "--out", out,
				"--epochs", "10000000", "--delay", "*:150ms:1", "--stall-warn", "100ms")
			hangUp(t, cmd, filepath.Join(out, "metrics.jsonl"))
			if code := cmd.ProcessState.ExitCode(); code != 75 {
				t.Errorf("%v, want exit 75", cmd.ProcessState)
			}
			checkSaved(t, out)
		})
	}
}

// A rank that stops answering without dying ends the job after --stall-abort,
// and the message names it.
func TestStalledRank(t *testing.T) {
	siafu := program(t, "mpi")
	s := newScene(t)
	cmd := mpitest.Mpirun(t, 3, "/bin/sh", "-c", s.inTraining("1", "STOP"), "sh",
		siafu, "train", s.data, "--epochs", "10000000", "--servers", "0", "--out", filepath.Join(s.free, "run"), "--quiet",
		"--stall-warn", "1s", "--stall-abort", "4s")
	code, text := finish(t, cmd)
	// On a busy machine other ranks may be late as well.
	if code != 1 || !regexp.MustCompile(`for ranks? (\d+ on \S+, )*1 on `).MatchString(text) {
		t.Errorf("exit %d:\n%s", code, text)
	}
	// mpirun cannot end a stopped process itself.
	for _, pid := range mpitest.Running(s.free) {
		t.Logf("process %s is left", pid)
	}
}

// Ranks under a launcher do not see the terminal, and show a line on it all the same.
func TestLiveLineUnderLaunch(t *testing.T) {
	checkLiveLine(t, program(t, "mpi"), "launch", "-n", "2", "--")
}

// A disk that fills up in the middle of training ends a launched run at once: it would fill
// up again.
func TestFullDiskUnderLaunch(t *testing.T) {
	disk, data := hosttest.SmallDisk(t, "64k"), small(t)
	cmd := exec.CommandContext(t.Context(), program(t, "mpi"), "launch", "-n", "2", "train", data, "--servers", "0",
		"--epochs", "400", "--quiet", "--out", filepath.Join(disk, "run"))
	text, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 74 || !strings.Contains(string(text), "no space left") {
		t.Errorf("%v: exit %d:\n%s", err, code, text)
	}
	if strings.Contains(string(text), "restart") {
		t.Errorf("it was tried again:\n%s", text)
	}
}
