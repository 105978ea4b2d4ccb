//go:build mpi

package faulttest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// orphansEnd is how long ranks may live on without siafu launch: mpirun gives
// them two seconds to end by themselves, and the machine may be busy.
const orphansEnd = 10 * time.Second

// try is one siafu launch to kill.
type try struct {
	name string
	line []string
	run  string
	then func(run string) bool // kills it at the first true
}

// tries returns fourteen moments: during the start, when ranks exist, after a restart, and during
// real training. In the others, epochs only sleep.
func tries(t *testing.T, stage *stage) (list []try) {
	_, standin := hosttest.Programs(t)
	dir := t.TempDir()
	add := func(n int, name string, then func(int) func(string) bool, flags, command []string) {
		for i := range n {
			run := filepath.Join(dir, fmt.Sprintf("%s-%d", name, i))
			line := slices.Concat([]string{"launch", "-n", "2", "--backoff", "10ms"}, flags, command, []string{"--out", run})
			list = append(list, try{name, line, run, then(i)})
		}
	}
	naps := []string{"train", "data", "--epochs", "100000", "--resume", "auto"}
	earnest := []string{"train", stage.data, "--epochs", "1000000", "--threads", "1", "--servers", "1"}
	add(6, "start", func(i int) func(string) bool { return after(time.Duration(i) * 100 * time.Millisecond) },
		[]string{"--program", standin}, naps)
	add(2, "ranks", holds("log", "start epoch=1 "), []string{"--program", standin}, naps)
	add(2, "restart", holds("log", "start epoch=2 "), []string{"--program", standin}, append(naps, "--crash-at", "2"))
	add(2, "training", holds("metrics.jsonl", "loss"), nil, earnest)
	add(2, "in-process", holds("metrics.jsonl", "loss"), []string{"--in-process"}, earnest)
	return list
}

// after returns a condition that is true after a duration.
func after(d time.Duration) func(string) bool {
	began := time.Now()
	return func(string) bool { return time.Since(began) >= d }
}

// holds returns a condition that is true if a file of the run contains a text.
func holds(name, text string) func(int) func(string) bool {
	return func(int) func(string) bool {
		return func(run string) bool {
			b, _ := os.ReadFile(filepath.Join(run, name)) // it will come
			return bytes.Contains(b, []byte(text))
		}
	}
}

// kill waits for the moment of a try, and kills siafu launch alone.
func (x try) kill(t *testing.T, j *job) {
	for deadline := time.Now().Add(hosttest.Patience); !x.then(x.run); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%s: its moment does not come", x.name)
			break
		}
	}
	_ = j.cmd.Process.Kill()
	_ = j.cmd.Wait() // it was killed
}

// Whenever siafu launch is killed, mpirun and the ranks end.
func TestNoOrphans(t *testing.T) {
	stage := newStage(t)
	mark := filepath.Join(t.TempDir(), "mark")
	var jobs []*job
	var killed sync.WaitGroup
	for _, x := range tries(t, stage) {
		j := start(t, mark, exec.Command(stage.siafu, x.line...), "SIAFU_TEST_MARK="+mark)
		jobs = append(jobs, j)
		killed.Go(func() { x.kill(t, j) })
	}
	killed.Wait()
	for deadline := time.Now().Add(orphansEnd); jobs[0].processes() != nil && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	for _, pid := range jobs[0].processes() {
		line, _ := os.ReadFile("/proc/" + pid + "/cmdline") // it may have ended
		t.Errorf("process %s is left: %q", pid, strings.Split(string(line), "\x00"))
		_ = exec.Command("kill", "-9", pid).Run()
	}
	for _, j := range jobs {
		<-j.copied // what they write goes to folders of the test
	}
}
