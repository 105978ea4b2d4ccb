//go:build mpi

package faulttest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
	"siafu/internal/testkit/mpitest"
)

// If launcher, mpirun and ranks are all killed at the same time, their files remain. Doctor and the
// next run name and remove all of them, but no files of a running job.
func TestEverythingKilled(t *testing.T) {
	mpitest.NeedOpenMPI(t, "removing the shared memory of killed ranks")
	stage := newStage(t)
	x := scene{kind: "wait", rank: 1, mode: "pipe", moment: "GA", epoch: 2}
	lives := stage.launch(t, x, filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "mark"), "--stall-abort", "5m")
	defer lives.killAll()
	await(t, lives)
	held := lives.keeps(t)
	for name, args := range map[string][]string{
		"doctor":       {"doctor"},
		"the next run": {"launch", "-n", "1", "doctor"},
	} {
		t.Run(name, func(t *testing.T) {
			// Every start of siafu on this machine removes leftovers, so that a concurrent test may
			// have been faster.
			var missing error
			for range 12 {
				if missing = tidies(t, stage, x, args); missing == nil {
					return
				}
			}
			t.Error(missing)
		})
	}
	if there := existing(held); len(there) != len(held) {
		t.Errorf("of %q, which a job holds, there are %q", held, there)
	}
	lives.killAll()
	lives.wait(t)
	if out, err := exec.Command(stage.siafu, "doctor").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if there := existing(held[1:]); there != nil {
		t.Errorf("shared memory is left: %q", there)
	}
}

// tidies kills everything of a job and has siafu name and remove what is left. It
// returns an error where somebody else has removed it.
func tidies(t *testing.T, stage *stage, x scene, args []string) error {
	t.Helper()
	_, j := stage.begin(t, x)
	defer j.killAll()
	left := j.keeps(t)
	j.killAll()
	j.wait(t)
	if there := existing(left); len(there) != len(left) {
		return fmt.Errorf("of %q there are %q", left, there)
	}
	next := exec.Command(stage.siafu, args...)
	next.Env = j.cmd.Env[:len(j.cmd.Env):len(j.cmd.Env)]
	next.Env = append(next.Env, "SIAFU_FAULT=")
	out, err := next.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if there := existing(left); there != nil {
		t.Errorf("left are %q\n%s", there, out)
	}
	for _, path := range left {
		if !strings.Contains(string(out), "removed path="+path) {
			return fmt.Errorf("it does not name %s\n%s", path, out)
		}
	}
	return nil
}

// shared is a path of memory that processes share.
var shared = regexp.MustCompile(`/dev/shm/\S+`)

// keeps returns the paths that remain after a kill: the launcher's session and the shared memory of
// each rank.
func (j *job) keeps(t *testing.T) []string {
	t.Helper()
	tmp := ""
	for _, kv := range j.cmd.Env {
		if path, ok := strings.CutPrefix(kv, "TMPDIR="); ok {
			tmp = path
		}
	}
	paths, _ := filepath.Glob(filepath.Join(tmp, "*")) // hidden ones as well
	memory := map[string]bool{}
	for _, pid := range j.processes() {
		maps, _ := os.ReadFile("/proc/" + pid + "/maps") // it may have ended
		for _, path := range shared.FindAllString(string(maps), -1) {
			if strings.HasPrefix(path, os.TempDir()+"/") {
				continue // the dataset, where tests are in memory
			}
			if dir := filepath.Dir(path); dir != "/dev/shm" {
				path = dir
			}
			memory[path] = true
		}
	}
	for path := range memory {
		paths = append(paths, path)
	}
	if len(paths) != 1+size {
		t.Fatalf("a job of %d ranks keeps %q", size, paths)
	}
	return paths
}

// existing returns those of the paths that exist.
func existing(paths []string) (there []string) {
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			there = append(there, path)
		}
	}
	return there
}

// killAll kills every process of the job and waits until each has closed its files, whose
// locks tell others that it lives. They are stopped first, so that none can do anything
// about the end of another.
func (j *job) killAll() {
	var killed []string
	for _, signal := range []string{"-STOP", "-KILL"} {
		killed = j.processes()
		for _, pid := range killed {
			_ = exec.Command("kill", signal, pid).Run() // it may have ended
		}
	}
	for _, pid := range killed {
		for deadline := time.Now().Add(hosttest.Patience); !ended(pid) && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
}

// ended reports whether a process has ended: it is gone, or waits for its parent to notice.
// Its environment is empty earlier, while its files are still open.
func ended(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || bytes.Contains(stat, []byte(") Z ")) || bytes.Contains(stat, []byte(") X "))
}
