//go:build mpi

package faulttest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
	"siafu/ranks/inject"
	"siafu/ranks/runfolder"
)

const epochs = 12

// Deadlines from a fault to the end of the ranks. A stopped rank is noticed
// after --stall-abort, by servers a quarter later.
const (
	endsIn      = hosttest.Patience / 4 // the ranks end within a second; a busy machine takes longer
	stallAbort  = 6 * time.Second
	stallEndsIn = stallAbort*5/4 + endsIn
)

// scene is one run that meets a fault.
type scene struct {
	kind   string // kill, stop, exit; disk
	rank   int
	mode   string
	moment string // of package inject
	epoch  int
}

func (s scene) String() string {
	return fmt.Sprintf("%s of rank %d, mode %s, at %s, epoch %d", s.kind, s.rank, s.mode, s.moment, s.epoch)
}

// stage has the programs and data that all scenes share.
type stage struct {
	siafu string
	data  string
	flags []string // of train, beside those of every run
	model []byte   // of the undisturbed run in step
}

// ready is the stage of all tests, once one of them has made it.
var ready *stage

func TestMain(m *testing.M) {
	code := m.Run()
	if ready != nil {
		os.RemoveAll(filepath.Dir(ready.data))
	}
	os.Exit(code)
}

// newStage returns a copy of the stage. Tests that call it do not run in parallel.
func newStage(t *testing.T) *stage {
	t.Helper()
	if _, err := exec.LookPath("mpirun"); err != nil {
		t.Skip("no mpirun on this machine: install openmpi-bin")
	}
	siafu, _ := hosttest.Programs(t)
	if ready == nil {
		dir, err := os.MkdirTemp("", "stage")
		if err != nil {
			t.Fatal(err)
		}
		s := &stage{siafu: siafu, data: filepath.Join(dir, "data")}
		s.must(t, "generate", s.data, "--vertices", "3000", "--edges", "30000", "--features", "16", "--classes", "4")
		s.undisturbed(t)
		ready = s
	}
	s := *ready
	return &s
}

// undisturbed makes the model that runs in step leave.
func (s *stage) undisturbed(t *testing.T) {
	t.Helper()
	run := filepath.Join(t.TempDir(), "run")
	s.must(t, append(s.train("pipe", run), "--ranks", fmt.Sprint(size))...)
	s.model = readModel(t, run)
}

func (s *stage) must(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(s.siafu, args...).CombinedOutput(); err != nil {
		t.Fatalf("siafu %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// train returns the command line of every run.
func (s *stage) train(mode, run string) []string {
	return append([]string{"train", s.data, "--epochs", fmt.Sprint(epochs), "--hidden", "8", "--threads", "1",
		"--servers", fmt.Sprint(servers),
		"--mode", mode, "--checkpoint-every", "3e", "--stall-warn", "1s", "--stall-abort", stallAbort.String(), "--out", run}, s.flags...)
}

func readModel(t *testing.T, run string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(run, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// play runs a scene and checks its results and all remaining files and processes.
func (s *stage) play(t *testing.T, x scene) {
	dir := t.TempDir()
	if x.kind == "disk" {
		dir = hosttest.SmallDisk(t, "512k")
	}
	run, mark := filepath.Join(dir, "run"), filepath.Join(t.TempDir(), "mark")
	j := s.launch(t, x, run, mark)
	if x.kind == "disk" {
		s.fullDisk(t, x, j, dir, run)
		return
	}
	j.wait(t)
	if j.code != 0 {
		t.Fatalf("%v: exit %d\n%s", x, j.code, j.text())
	}
	j.restartedInTime(t, x)
	j.namesRank(t, x)
	s.whole(t, x, run, j)
}

// launch starts the run under siafu launch.
func (s *stage) launch(t *testing.T, x scene, run, mark string, more ...string) *job {
	kind := x.kind
	if kind == "disk" {
		kind = "wait"
	}
	line := slices.Concat([]string{"launch", "-n", fmt.Sprint(size), "--restarts", "2", "--backoff", "100ms"}, s.train(x.mode, run), more)
	return start(t, mark, exec.Command(s.siafu, line...),
		fmt.Sprintf("%s=%d:%s:%d:%s:%s", inject.Variable, x.rank, x.moment, x.epoch, kind, mark))
}

// whole asserts that a run has ended as if nothing had been.
func (s *stage) whole(t *testing.T, x scene, run string, j *job) {
	t.Helper()
	r, err := runfolder.Read(run)
	if err != nil {
		t.Fatalf("%v: %v\n%s", x, err, j.text())
	}
	for i, e := range r.Epochs {
		if e.Epoch != i+1 {
			t.Errorf("%v: line %d of metrics.jsonl is of epoch %d", x, i+1, e.Epoch)
		}
	}
	if len(r.Epochs) != epochs {
		t.Errorf("%v: %d epochs", x, len(r.Epochs))
	}
	if x.mode == "pipe" && !bytes.Equal(readModel(t, run), s.model) {
		t.Errorf("%v: the model is another than that of an undisturbed run\n%s", x, j.text())
	}
	for _, pattern := range []string{"*.tmp-*", ".*", "checkpoints/.*"} {
		if left, _ := filepath.Glob(filepath.Join(run, pattern)); left != nil {
			t.Errorf("%v: left behind: %s", x, left)
		}
	}
}

// job is a process of siafu launch and all below it.
type job struct {
	cmd    *exec.Cmd
	mark   string
	code   int
	copied chan struct{}
	lines  []string
	at     []time.Time // when each line came
}

func start(t *testing.T, mark string, cmd *exec.Cmd, env string) *job {
	t.Helper()
	j := &job{cmd: cmd, mark: mark, copied: make(chan struct{})}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SIAFU_") {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, env, "TMPDIR="+short(t))
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	go j.read(out)
	return j
}

// short returns a folder for what a launcher that is killed leaves behind. Its path
// is short, for the sake of sockets.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "f")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (j *job) read(out io.ReadCloser) {
	defer close(j.copied)
	defer out.Close()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		j.lines, j.at = append(j.lines, lines.Text()), append(j.at, time.Now())
	}
}

// wait waits for the job to end, and for all of its processes.
func (j *job) wait(t *testing.T) {
	t.Helper()
	late := time.AfterFunc(hosttest.Patience, func() {
		for _, pid := range append(j.processes(), fmt.Sprint(j.cmd.Process.Pid)) {
			_ = exec.Command("kill", "-9", pid).Run() // it may have ended meanwhile
		}
	})
	_ = j.cmd.Wait() // the code is looked at
	if !late.Stop() {
		t.Errorf("it hangs")
	}
	j.code = j.cmd.ProcessState.ExitCode()
	var left []string
	for range 500 {
		if left = j.processes(); left == nil {
			<-j.copied
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, pid := range left {
		cmdline, _ := os.ReadFile("/proc/" + pid + "/cmdline")
		t.Errorf("process %s is left: %q", pid, cmdline)
		_ = exec.Command("kill", "-9", pid).Run()
	}
	<-j.copied
}

// processes returns the processes of the job, found by the mark in their environment.
func (j *job) processes() (pids []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		env, err := os.ReadFile(path) // others' processes cannot be read
		if err == nil && bytes.Contains(env, []byte(j.mark)) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

func (j *job) text() string { return strings.Join(j.lines, "\n") }

// restart is when the launcher has announced its first restart.
var restart = regexp.MustCompile(`restart 1 of 2 in `)

// restartedInTime asserts that the fault has struck and that the other ranks
// have ended soon after it.
func (j *job) restartedInTime(t *testing.T, x scene) {
	t.Helper()
	struck, err := os.Stat(j.mark)
	if err != nil {
		t.Fatalf("%v: it never comes to that\n%s", x, j.text())
	}
	limit := endsIn
	if x.kind == "stop" {
		limit = stallEndsIn
	}
	for i, line := range j.lines {
		if !restart.MatchString(line) {
			continue
		}
		if d := j.at[i].Sub(struck.ModTime()); d > limit {
			t.Errorf("%v: the ranks ended after %v, later than %v\n%s", x, d, limit, j.text())
		}
		return
	}
	t.Errorf("%v: there was no restart\n%s", x, j.text())
}

// namesRank asserts that the line about the restart says which rank failed.
func (j *job) namesRank(t *testing.T, x scene) {
	t.Helper()
	if !mpitest.OpenMPI() && x.kind != "stop" { // Hydra does not report which rank has ended
		return
	}
	pattern := fmt.Sprintf(`the ranks ended with .*: rank %d .*; restart 1 of 2`, x.rank)
	if x.kind == "stop" {
		// Beside it may stand ranks that wait for it themselves.
		pattern = fmt.Sprintf(`(has waited \S+|which waits) for ranks? (\d+ on \S+, )*%d on .*; restart 1 of 2`, x.rank)
	}
	if !regexp.MustCompile(pattern).MatchString(j.text()) {
		t.Errorf("%v: it does not name the rank\n%s", x, j.text())
	}
}
