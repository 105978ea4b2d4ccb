//go:build mpi

package mpi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
	"siafu/internal/testkit/worldtest"
	"siafu/ranks/world"
)

// The tests start this test binary under mpirun, and the ranks run TestRank. An environment
// variable contains the scene. Another one marks the processes, so that leftover ones are found.
const (
	sceneVar = "SIAFU_MPI_SCENE"
	markVar  = "SIAFU_MPI_MARK"
)

// play runs a scene on n ranks and returns the launcher's output and exit code.
func play(t *testing.T, n int, scene string) (output string, code int) {
	t.Helper()
	mark := fmt.Sprintf("%s-%d-%d", scene, n, os.Getpid())
	cmd := mpitest.Mpirun(t, n, os.Args[0], "-test.run=^TestRank$", "-test.v")
	cmd.Env = append(os.Environ(), sceneVar+"="+scene, markVar+"="+mark)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("mpirun: %v\n%s", err, out)
	}
	if left := marked(mark); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// marked finds the processes of a scene. One that is just ending gets a moment.
func marked(mark string) (pids []string) {
	for range 100 {
		pids = nil
		paths, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range paths {
			env, err := os.ReadFile(path) // others' processes cannot be read
			if err == nil && bytes.Contains(env, []byte(markVar+"="+mark)) {
				pids = append(pids, filepath.Base(filepath.Dir(path)))
			}
		}
		if len(pids) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return pids
}

func TestConformance(t *testing.T) {
	for _, n := range hosttest.ShareOf(t, 2, []int{1, 2, 4, 7}) {
		t.Run(strconv.Itoa(n), func(t *testing.T) { succeeds(t, n, "suite") })
	}
}

// TestPieces passes the suite with pieces so short that nearly every message
// and block is split, staged, or both.
func TestPieces(t *testing.T) { succeeds(t, 4, "pieces") }

// TestBig moves messages and blocks beyond 2³¹ bytes. It takes up to 16 GB of
// memory, so it is asked for by SIAFU_BIG=1.
func TestBig(t *testing.T) {
	if !hosttest.Big() {
		t.Skip("set SIAFU_BIG=1 to move messages of more than 2 GiB")
	}
	succeeds(t, 2, "big")
}

// TestSignals tests that MPI leaves Go the signals it needs.
func TestSignals(t *testing.T) { succeeds(t, 1, "nil-pointer") }

// All ranks leave and exit with a fault's code.
func TestAllFail(t *testing.T) {
	exits(t, 3, "all-fail", fault.Data.ExitCode(), "rank 1: read: x: bad")
}

// One rank fails alone.
func TestAbort(t *testing.T) { exits(t, 4, "abort", fault.Data.ExitCode(), "") }

// TestDeadRank kills one rank while the others wait for it.
func TestDeadRank(t *testing.T) { exits(t, 4, "dead", 128+int(syscall.SIGKILL), "") }

// TestStopAfterStall tests that stop does not wait for a rank that another
// wait was given up for.
func TestStopAfterStall(t *testing.T) { exits(t, 3, "stop-after-stall", 1, "for rank 2") }

func succeeds(t *testing.T, n int, scene string) {
	t.Helper()
	if out, code := play(t, n, scene); code != 0 || strings.Count(out, "\n--- PASS: TestRank") != n {
		t.Fatalf("mpirun ended with code %d\n%s", code, out)
	}
}

// TestFinalizeIsBounded tests that a rank does not wait for ever in the library
// for one that died on its way out.
func TestFinalizeIsBounded(t *testing.T) {
	p := &process{world: &comm{}}
	p.world.limits.Store(&world.Limits{Abort: 10 * time.Millisecond})
	never := make(chan bool)
	defer close(never)
	p.finalize(func() { <-never })
}

// soon is how long a job may take to end that has lost a rank.
const soon = hosttest.Patience / 2

func exits(t *testing.T, n int, scene string, want int, says string) {
	t.Helper()
	began := time.Now()
	out, code := play(t, n, scene)
	if !mpitest.OpenMPI() && code == int(syscall.SIGKILL) { // Hydra kills the other ranks, and reports that
		code = want
	}
	if code != want || !strings.Contains(out, says) {
		t.Fatalf("mpirun ended with code %d, want %d and the words %q\n%s", code, want, says, out)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("it took %v", took)
	}
}

// TestMpirunTimeLimit tests the helper that all of these rely on: when its
// time is up, nothing is left.
func TestMpirunTimeLimit(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	mark := fmt.Sprintf("limit-%d", os.Getpid())
	cmd := mpitest.MpirunContext(ctx, t, 2, "sleep", "600")
	cmd.Env = append(os.Environ(), markVar+"="+mark)
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("mpirun succeeded\n%s", out)
	}
	if left := marked(mark); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// The other half.

// TestRank runs one rank of a scene.
func TestRank(t *testing.T) {
	scene := os.Getenv(sceneVar)
	if scene == "" {
		t.Skip("runs only under mpirun, started by the other tests")
	}
	limit := wholePieces
	if scene == "pieces" {
		limit = pieces{length: 4096, span: 10_000}
	}
	c, stop, err := startWith(world.Limits{Abort: hosttest.Patience}, limit)
	if err != nil {
		t.Fatal(err)
	}
	scenes[scene](t, c, stop)
	stop()
}

// scenes are the functions that the ranks run.
var scenes = map[string]func(t *testing.T, c world.Comm, stop func()){
	"suite":       suite,
	"pieces":      suite,
	"big":         big,
	"nil-pointer": nilPointer,
	"all-fail": func(_ *testing.T, c world.Comm, stop func()) {
		var err error
		if c.Rank() == 1 {
			err = fault.New(fault.Data, "read", "x", "bad")
		}
		err = world.Agree(c, err)
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(fault.ExitCode(err))
	},
	"abort": func(t *testing.T, c world.Comm, _ func()) {
		if c.Rank() == 2 {
			c.Abort(fault.Data.ExitCode(), nil)
		}
		t.Errorf("the barrier without rank 2 ended: %v", c.Barrier())
	},
	"dead": func(t *testing.T, c world.Comm, _ func()) {
		if c.Rank() == 2 {
			t.Error(syscall.Kill(os.Getpid(), syscall.SIGKILL))
		}
		t.Errorf("the barrier without rank 2 ended: %v", c.Barrier())
	},
	"stop-after-stall": func(_ *testing.T, c world.Comm, stop func()) {
		if c.Rank() == 2 {
			time.Sleep(2 * soon)
		}
		c.SetLimits(world.Limits{Abort: time.Second})
		fmt.Fprintln(os.Stderr, c.Barrier())
		stop()
		os.Exit(1)
	},
}

// suite runs the conformance suite. A rank that fails ends the job: the others
// would wait for it.
func suite(t *testing.T, c world.Comm, _ func()) {
	worldtest.Run(t, c.Size(), func(t *testing.T, body func(c world.Comm) error) {
		s, err := c.Sub(ranksOf(c))
		if err == nil {
			s.SetLimits(world.Limits{}) // the suite sets its own
			err = body(s)
		}
		if err != nil {
			t.Errorf("rank %d: %v", c.Rank(), err)
			c.Abort(1, nil)
		}
	})
}

func ranksOf(c world.Comm) []int {
	ranks := make([]int, c.Size())
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}

// nilPointer tests that a fault of memory is still a panic of Go's.
func nilPointer(t *testing.T, _ world.Comm, _ func()) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var nowhere *int
	*nowhere = 1
}

// big moves a message and a block whose lengths, and whose displacements, do
// not fit in 32 bits.
func big(t *testing.T, c world.Comm, _ func()) {
	const n, own = 1<<31 + 12345, 10
	me, other := c.Rank(), 1-c.Rank()
	fill := func(b []byte, from int) {
		for i := 0; i < len(b); i += 4099 {
			b[i] = byte(i>>12) + byte(from)
		}
	}
	check := func(what string, b []byte) {
		if len(b) != n {
			t.Fatalf("%s: %d bytes, want %d", what, len(b), n)
		}
		for i := 0; i < len(b); i += 4099 {
			if b[i] != byte(i>>12)+byte(other) {
				t.Fatalf("%s: byte %d is %d", what, i, b[i])
			}
		}
	}
	// The other's block lies behind the own short one on rank 0, before it on
	// rank 1.
	counts, at := []int{own, n}, own
	if me == 1 {
		counts, at = []int{n, own}, 0
	}
	send := make([]byte, n+own)
	fill(send[at:at+n], me)
	m, err := swap(c, send[at:at+n], other)
	if err != nil {
		t.Fatal(err)
	}
	check("message", m)
	recv := make([]byte, n+own)
	req, err := c.Ialltoallv(send, counts, recv, counts)
	if err == nil {
		err = req.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	check("block", recv[at:at+n])
}

// swap exchanges a message with another rank.
func swap(c world.Comm, send []byte, other int) ([]byte, error) {
	req, err := c.Isend(send, other, 1)
	if err != nil {
		return nil, err
	}
	m, err := c.Recv(other, 1)
	if err != nil {
		return nil, err
	}
	return m.Data, req.Wait()
}
