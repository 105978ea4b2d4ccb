//go:build mpi

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/bench"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
)

// programs builds siafu with MPI, and siafu-bench in the same folder.
func programs(t *testing.T) string {
	t.Helper()
	hosttest.Go(t, "mpi/siafu-bench", "siafu/bench/siafu-bench", "mpi")
	return program(t, "mpi")
}

// Training over links of our own: every combination is there, bytes are those
// of the codec, and an epoch takes as long as its bytes over the slow link.
func TestBenchLinks(t *testing.T) {
	mpitest.NeedOpenMPI(t, "a link with a rate")
	siafu, data := programs(t), small(t, "--vertices", "2000", "--edges", "20000")
	args := []string{"bench", "links", data, "--hosts", "2", "--rates", "50mbit", "--codecs", "none,s2",
		"--partitioners", "hash", "--epochs", "8", "--turns", "1", "--json", "--",
		// Rows of both layers, far more than the burst that passes at once.
		"--servers", "0", "--hidden", "512", "--dropout", "0.5", "--input-dropout", "0.5", "--recompute-ghosts", "none"}
	var out, said bytes.Buffer
	cmd := exec.Command(siafu, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		if cmd.ProcessState.ExitCode() == 66 {
			t.Skip(said.String())
		}
		t.Fatalf("%v\n%s", err, said.String())
	}
	var runs []bench.LinkRun
	if err := json.Unmarshal(out.Bytes(), &runs); err != nil || len(runs) != 3 {
		t.Fatalf("%d runs, %v:\n%s", len(runs), err, out.String())
	}
	for i, want := range []bench.LinkRun{{Codec: "none", Mode: "nopipe"}, {Codec: "none", Mode: "pipe"}, {Codec: "s2", Mode: "pipe"}} {
		r := runs[i]
		// Two ranks send at the same time, over links of their own. A rank that is late finds rows that
		// have arrived before its epoch began, and a burst in the measured bandwidth.
		wire := float64(r.Sent) / 2 * 8 / 50e6
		if r.Codec != want.Codec || r.Mode != want.Mode || r.Raw <= 0 || (r.Sent == r.Raw) != (r.Codec == "none") ||
			r.Epoch < 0.4*wire || r.Measured.Bandwidth > 1.5*50e6/8 || r.SpeedUp <= 0 {
			t.Errorf("run %d is %+v; its bytes alone take %.4f s", i, r, wire)
		}
	}
	noHosts(t, cmd.Process.Pid)
}

// An interrupt takes hosts down too.
func TestBenchLinksInterrupted(t *testing.T) {
	mpitest.NeedOpenMPI(t, "a link with a rate")
	siafu, data := programs(t), small(t)
	var said bytes.Buffer
	cmd := exec.Command(siafu, "bench", "links", data, "--hosts", "2", "--rates", "50mbit", "--epochs", "1000000", "--", "--servers", "0")
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	awaitMpirun(t, cmd, ended, &said)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(hosttest.Patience):
		t.Fatal("it does not end")
	}
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(said.String(), "interrupted") {
		t.Errorf("exit %d: %s", code, said.String())
	}
	noHosts(t, cmd.Process.Pid)
}

// awaitMpirun returns the folder of /proc of the mpirun that a bench has started. It skips the test if the
// bench ends because this machine cannot make hosts.
func awaitMpirun(t *testing.T, cmd *exec.Cmd, ended <-chan error, said *bytes.Buffer) string {
	t.Helper()
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-ended:
			if cmd.ProcessState.ExitCode() == 66 {
				t.Skip(said.String())
			}
			t.Fatal(said.String())
		default:
		}
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
		for _, path := range threads {
			children, _ := os.ReadFile(path) // the thread may have ended
			for _, pid := range strings.Fields(string(children)) {
				name, _ := os.ReadFile("/proc/" + pid + "/comm")
				if slices.Contains([]string{"mpirun\n", "prterun\n"}, string(name)) {
					return "/proc/" + pid
				}
			}
		}
	}
	t.Fatal("mpirun does not start")
	return ""
}

// When a bench is killed mpirun ends, and the next bench takes down the hosts.
func TestBenchLinksKilled(t *testing.T) {
	mpitest.NeedOpenMPI(t, "a link with a rate")
	siafu, data := programs(t), small(t)
	bench := func(epochs string) *exec.Cmd {
		return exec.Command(siafu, "bench", "links", data, "--hosts", "2", "--rates", "50mbit", "--codecs", "none",
			"--partitioners", "hash", "--turns", "1", "--epochs", epochs, "--", "--servers", "0")
	}
	var said bytes.Buffer
	cmd := bench("1000000")
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	mpirun := awaitMpirun(t, cmd, ended, &said)
	_ = cmd.Process.Kill()
	<-ended
	for deadline := time.Now().Add(hosttest.Patience); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(mpirun); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(mpirun + " is left")
		}
	}
	if out, err := bench("2").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	noHosts(t, cmd.Process.Pid)
}

// noHosts fails if a process has left hosts behind.
func noHosts(t *testing.T, pid int) {
	t.Helper()
	for _, dir := range []string{"/sys/class/net", "/var/run/netns"} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "sf"+strconv.Itoa(pid)) {
				t.Errorf("%s is left", filepath.Join(dir, e.Name()))
			}
		}
	}
}
