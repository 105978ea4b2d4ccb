package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"siafu/internal/fault"
	"siafu/internal/scratch"
	"siafu/internal/testkit/hosttest"
)

// Only a crash is worth another attempt, and waits double.
func TestPolicy(t *testing.T) {
	o := Options{Restarts: 3, Backoff: 5 * time.Second}
	up := func(code int) outcome { return outcome{code: code, cameUp: true} }
	for _, tc := range []struct {
		name string
		end  outcome
		n    int
		wait time.Duration // 0: no restart
	}{
		{"killed", up(137), 0, 5 * time.Second},
		{"again", up(137), 1, 10 * time.Second},
		{"a third time", up(1), 2, 20 * time.Second},
		{"and no more", up(137), 3, 0},
		{"I/O", up(74), 0, 5 * time.Second},
		{"done", up(0), 0, 0},
		{"usage", up(64), 0, 0},
		{"data", up(65), 0, 0},
		{"missing", up(66), 0, 0},
		{"stopped", up(75), 0, 0},
		{"diverged", up(76), 0, 0},
		{"configuration", up(78), 0, 0},
		{"never there", outcome{code: 1}, 0, 0},
		{"asked to stop", outcome{code: 137, cameUp: true, stopped: true}, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if wait, again := o.again(tc.end, tc.n); wait != tc.wait || again != (tc.wait > 0) {
				t.Errorf("waits %v, %t; want %v", wait, again, tc.wait)
			}
		})
	}
	many := Options{Restarts: 1 << 30, Backoff: time.Second}
	if wait, again := many.again(up(1), 1<<20); !again || wait != maxBackoff {
		t.Errorf("the wait grows to %v", wait)
	}
}

func TestExitCode(t *testing.T) {
	for want, ends := range map[int][]outcome{
		0:   {{code: 0}, {code: 0, stopped: true}},
		1:   {{code: 1}, {code: 1, stopped: true}},
		75:  {{code: 75}, {code: 143, stopped: true}, {code: 137, stopped: true}},
		130: {{code: 1, stopped: true, killed: true}, {code: 137, stopped: true, killed: true}},
		137: {{code: 137}},
	} {
		for _, end := range ends {
			if got := end.exitCode(); got != want {
				t.Errorf("%+v gives %d, want %d", end, got, want)
			}
		}
	}
}

// Invalid statuses are ignored.
func TestReadStatus(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status")
	if got := readStatus(path); got != (status{code: -1, other: -1}) {
		t.Errorf("no file: %+v", got)
	}
	for text, want := range map[string]status{
		"":                                      {code: -1, other: -1},
		"ready\nother 0\n":                      {ready: true, code: -1},
		"other 75\ncode 0\n":                    {other: 75},
		"ready\n":                               {ready: true, code: -1, other: -1},
		"ready\ncode 75\n":                      {ready: true, code: 75, other: -1},
		"ready\nerror train: x: bad\ncode 65\n": {ready: true, code: 65, err: "train: x: bad", other: -1},
		"ready\nerror x\nlasting\ncode 74\n":    {ready: true, lasts: true, code: 74, err: "x", other: -1},
		"code 0\n":                              {other: -1},
		"code -1\n":                             {code: -1, other: -1},
		"code 999\n":                            {code: -1, other: -1},
		"code\nred\x00\n":                       {code: -1, other: -1},
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := readStatus(path); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestCommand(t *testing.T) {
	here := place{local: true, sessions: "/tmp/s"}
	for _, tc := range []struct {
		name string
		o    Options
		p    place
		want string
	}{
		{"one host", Options{Launcher: Mpirun, Ranks: 4}, here,
			"mpirun --bind-to none --mca mpi_yield_when_idle 1 -n 4 --oversubscribe --mca orte_tmpdir_base /tmp/s siafu train d"},
		{"root, container", Options{Launcher: Mpirun, Ranks: 1, Wrap: []string{"apptainer", "exec", "x.sif"}},
			place{root: true, local: true, sessions: "/tmp/s"},
			"mpirun --bind-to none --mca mpi_yield_when_idle 1 -n 1 --allow-run-as-root --oversubscribe --mca orte_tmpdir_base /tmp/s " +
				"apptainer exec x.sif siafu train d"},
		{"several hosts", Options{Launcher: Mpirun, Hostfile: "h", Self: "/siafu"}, place{env: []string{"PATH", "SIAFU_LR"}},
			"mpirun --bind-to none --mca mpi_yield_when_idle 1 --hostfile h --mca orte_launch_agent /siafu shield orted -x " +
				"PATH -x SIAFU_LR siafu train d"},
		{"several hosts, PRRTE", Options{Launcher: "prterun", Hostfile: "h", Self: "/siafu", Survive: true}, place{agent: "ssh"},
			"prterun --bind-to none --mca mpi_yield_when_idle 1 --enable-recovery --hostfile h --mca prte_launch_agent /siafu shield prted " +
				"--mca plm ssh --mca plm_ssh_no_tree_spawn 1 --mca plm_ssh_agent /siafu shield --agent ssh siafu train d"},
		{"srun", Options{Launcher: Srun, Ranks: 4}, place{cpus: "8"},
			"srun --mpi=" + slurmPMI() + " --kill-on-bad-exit=1 --quit-on-interrupt --ntasks=4 --cpus-per-task=8 siafu train d"},
		{"hydra", Options{Launcher: "mpiexec.hydra", Ranks: 4, Hostfile: "h"}, here,
			"mpiexec.hydra -bind-to none -n 4 -f /tmp/s/hosts siafu train d"},
		{"in process", Options{Launcher: InProcess, Ranks: 4}, here, "siafu train d --ranks 4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.o.Program = "siafu"
			tc.o.dialect = map[string]*dialect{Mpirun: &openMPI, "prterun": &prrte, Srun: &slurm, "mpiexec.hydra": &hydra}[tc.o.Launcher]
			if got := strings.Join(tc.o.command(tc.p, []string{"train", "d"}), " "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	if got := carried([]string{"SIAFU_LR=1", "HOME=/root", "GOMAXPROCS=2", "SIAFU_STATUS_FILE=x"}); strings.Join(got,
		" ") != "GOMAXPROCS SIAFU_LR SIAFU_STATUS_FILE" {
		t.Errorf("carried: %q", got)
	}
}

// script returns a program that a shell runs, for the supervisor alone: what the
// ranks of siafu do is in the script, their launcher is left out.
func script(t *testing.T, text string) (Options, *said) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "program")
	hosttest.Program(t, path, "#!/bin/bash\ncd "+dir+"\n"+text)
	out := &said{}
	return Options{
		Launcher: InProcess, Program: path, Args: []string{"first"}, Env: []string{"MINE=" + dir},
		Restarts: 2, Backoff: 10 * time.Millisecond, Out: out, Err: out,
		Log: func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) },
	}, out
}

// said is the output of the ranks and of their supervisor.
type said struct {
	mu   sync.Mutex
	text []byte
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, b...)
	return len(b), nil
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

func code(err error) int {
	var e *Ended
	if errors.As(err, &e) {
		return e.Code
	}
	return fault.ExitCode(err)
}

const ready = "echo ready >>$SIAFU_STATUS_FILE\n"

// othersRemains matches lines about leftovers of ranks that other tests on this host have killed.
var othersRemains = regexp.MustCompile(`(?m)^removed path=.*\n`)

func TestRestarts(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		code       int
		says       string
	}{
		{"crash", ready + "[ $MINE = $PWD ] && echo args $1; [ -e came ] && exit 0; touch came; kill -9 $$", 0,
			"args first\nthe ranks ended with signal 9 (killed); restart 1 of 2 in 10ms\nargs first\n"},
		{"always", ready + "exit 3", 3, "the ranks ended with exit code 3; restart 1 of 2 in 10ms\nthe ranks ended with exit code 3; " +
			"restart 2 of 2 in 20ms\ngiving up after 2 restarts: the ranks ended with exit code 3\n"},
		{"data", ready + "exit 65", 65, ""},
		{"never there", "exit 3", 3, ""},
		{"what rank 0 says", ready + "echo code 78 >>$SIAFU_STATUS_FILE; exit 1", 78, ""},
		{"no room", ready + "echo lasting >>$SIAFU_STATUS_FILE; exit 74", 74, ""},
		{"arguments", "[ \"$*\" = 'first --ranks 3' ]", 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, out := script(t, tc.text)
			if tc.name == "arguments" {
				o.Ranks = 3
			}
			got, said := code(Run(o)), othersRemains.ReplaceAllString(out.String(), "")
			if got != tc.code || said != tc.says {
				t.Errorf("exit %d, want %d; said\n%swant\n%s", got, tc.code, out, tc.says)
			}
		})
	}
}

// A run that survives losses may be led to its end by a rank of another launcher: the code is that of the
// ranks of this one. Without such a rank, all are lost, and the run is restarted.
func TestLedByAnother(t *testing.T) {
	for _, tc := range []struct {
		text string
		code int
		says string
	}{
		{ready + "echo other 0 >>$SIAFU_STATUS_FILE", 0, ""},
		{ready + "echo other 75 >>$SIAFU_STATUS_FILE", 75, ""},
		{ready + "echo other 0 >>$SIAFU_STATUS_FILE; echo code 65 >>$SIAFU_STATUS_FILE", 65, ""},
		{ready + "[ -e came ] && echo code 0 >>$SIAFU_STATUS_FILE; touch came", 0,
			"the ranks ended with signal 9 (killed); restart 1 of 2 in 10ms\n"},
	} {
		o, out := script(t, tc.text)
		o.Survive = true
		got, said := code(Run(o)), othersRemains.ReplaceAllString(out.String(), "")
		if got != tc.code || said != tc.says {
			t.Errorf("%s: exit %d, want %d; said\n%s", tc.text, got, tc.code, said)
		}
	}
}

// Signals reach a program that takes them, and not before it does.
func TestSignals(t *testing.T) {
	loop := "for i in {1..100}; do sleep 0.05; done; echo too late; exit 9\n"
	for _, tc := range []struct {
		name, text string
		send       []os.Signal
		code       int
		says       string
	}{
		{"stop", "trap 'echo two; exit 75' USR2\n" + ready + loop, []os.Signal{syscall.SIGTERM}, 75, "two\n"},
		{"held until it is there", "sleep 0.3; trap 'echo two; exit 75' USR2\n" + ready + loop, []os.Signal{syscall.SIGTERM}, 75, "two\n"},
		{"checkpoint, then stop", "trap 'echo one' USR1; trap 'echo two; exit 75' USR2\n" + ready + loop,
			[]os.Signal{syscall.SIGUSR1, syscall.SIGINT}, 75, "one\ntwo\n"},
		{"stop twice is stop", "trap 'sleep 0.3; exit 75' USR2\n" + ready + loop, []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, 75, ""},
		{"second SIGINT kills", "trap '' USR2; trap 'exit 5' INT\n" + ready + loop, []os.Signal{syscall.SIGINT, syscall.SIGINT}, 130, ""},
		{"killed before it saved", ready + loop, []os.Signal{syscall.SIGTERM}, 75, "the ranks were ended by signal 12 (user defined " +
			"signal 2) before they could save: run again to continue from the last checkpoint\n"},
		{"finished all the same", "trap 'exit 0' USR2\n" + ready + loop, []os.Signal{syscall.SIGTERM}, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o, out := script(t, tc.text)
			signals := make(chan os.Signal, 8)
			go func() {
				for _, s := range tc.send {
					time.Sleep(150 * time.Millisecond)
					signals <- s
				}
			}()
			if got := code(o.supervise(&scratch.Folder{Path: t.TempDir()}, signals)); got != tc.code || out.String() != tc.says {
				t.Errorf("exit %d, want %d; said\n%swant\n%s", got, tc.code, out, tc.says)
			}
		})
	}
}

// A request to stop ends the wait before a restart.
func TestStopBetweenAttempts(t *testing.T) {
	o, _ := script(t, ready+"exit 3")
	o.Backoff = time.Minute
	signals := make(chan os.Signal, 1)
	time.AfterFunc(200*time.Millisecond, func() { signals <- syscall.SIGTERM })
	if got := code(o.supervise(&scratch.Folder{Path: t.TempDir()}, signals)); got != 3 {
		t.Errorf("exit %d", got)
	}
}

func TestNoLauncher(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for launcher, says := range map[string]string{Mpirun: "--in-process", Srun: "--launcher mpirun"} {
		err := Run(Options{Launcher: launcher})
		if fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", launcher, err)
		}
	}
	t.Setenv("OMPI_COMM_WORLD_RANK", "0")
	t.Setenv("OMPI_COMM_WORLD_SIZE", "2")
	if err := Run(Options{Launcher: InProcess}); fault.KindOf(err) != fault.Usage {
		t.Errorf("as a rank: %v", err)
	}
}

// A rank that does not end after rank 0 has is killed. The run has its results,
// which another attempt finds.
func TestLinger(t *testing.T) {
	for _, status := range []string{"code 0", "other 0"} {
		t.Run(status, func(t *testing.T) { testLinger(t, status) })
	}
}

func testLinger(t *testing.T, status string) {
	o, out := script(t, ready+"[ -e came ] && exit 0\ntouch came; echo "+status+" >>$SIAFU_STATUS_FILE; exec sleep 60")
	o.Linger, o.Survive = 50*time.Millisecond, status != "code 0"
	began := time.Now()
	got, said := code(Run(o)), othersRemains.ReplaceAllString(out.String(), "")
	if got != 0 || !strings.HasPrefix(said, "the run ended 50ms ago, and another rank or the launcher has not: it is killed\n") ||
		time.Since(began) > hosttest.Patience/2 {
		t.Errorf("exit %d after %v; said\n%s", got, time.Since(began), said)
	}
}

// A host of the hostfile without an address is named, and the run is not started again.
func TestUnknownHost(t *testing.T) {
	dir := t.TempDir()
	hosttest.Program(t, filepath.Join(dir, Mpirun), "#!/bin/sh\n")
	t.Setenv("PATH", dir)
	o, out := script(t, "echo ssh: Could not resolve hostname n9: Name or service not known >&2; exit 255")
	o.Launcher, o.Hostfile, o.Self = Mpirun, filepath.Join(dir, "hosts"), o.Program
	hosttest.Program(t, o.Hostfile, "n9\n")
	if err := Run(o); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "hosts: the host n9 is unknown") {
		t.Errorf("%v; said\n%s", err, out)
	}
}
