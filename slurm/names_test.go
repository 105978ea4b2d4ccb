//go:build mpi

package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"siafu/internal/testkit/hosttest"
)

// nastyNames passes the scripts of all difficult names to sbatch. It runs the script that combines
// the difficulties: it must write to the expected log, and siafu must receive its arguments.
func nastyNames(t *testing.T) {
	self, dir := printer(t), t.TempDir()
	for i, name := range nasty {
		j := named(self, name, filepath.Join(dir, name), name, "")
		j.Nodes, j.CPUsPerTask = 1, 1
		path := filepath.Join(dir, "script")
		for _, text := range []string{j.Script(), j.PartitionScript()} {
			hosttest.Program(t, path, text)
			if _, err := slurm.run(nil, "sbatch", "--test-only", path); err != nil {
				t.Errorf("%d, %q: %v", i, name, err)
			}
		}
	}
	const all = `100%j it's "a" #b $HOME`
	j := named(self, all, filepath.Join(dir, all), all, "")
	j.Nodes, j.TasksPerNode, j.CPUsPerTask = 1, 1, 1
	r, err := j.Submit()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, run: j.Run, id: r.Job}
	s.ends("COMPLETED")
	want := "train\x00" + all + "\x00"
	var text []byte
	for deadline := time.Now().Add(hosttest.Patience); time.Now().Before(deadline) && err == nil; time.Sleep(50 * time.Millisecond) {
		if text, err = os.ReadFile(j.Log(r.Job)); strings.Contains(string(text), want) {
			break
		}
	}
	if !strings.Contains(string(text), want) {
		t.Errorf("%v: the log %s holds %q", err, j.Log(r.Job), text)
	}
	if out, err := slurm.run(nil, "scontrol", "--oneliner", "show", "job", r.Job); err != nil ||
		!strings.Contains(out, " JobName="+all+" UserId=") {
		t.Errorf("%v: the job is not called %s: %s", err, all, out)
	}
}
