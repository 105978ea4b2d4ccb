//go:build mpi

package slurm

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"siafu/internal/testkit/hosttest"
	"siafu/ranks/runfolder"
)

// lesson is the dataset and the programs of jobs with real training.
type lesson struct {
	siafu, data string
}

func newLesson(t *testing.T) *lesson {
	t.Helper()
	l := &lesson{data: filepath.Join(sharedDir(t), "data")}
	l.siafu, _ = hosttest.Programs(t)
	l.must(t, "generate", l.data, "--vertices", "2000", "--edges", "20000", "--features", "16", "--classes", "4")
	l.must(t, "partition", l.data, "--parts", "3") // or tasks of an array would do it at once
	return l
}

func (l *lesson) must(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(l.siafu, args...).CombinedOutput(); err != nil {
		t.Fatalf("siafu %q: %v\n%s", args, err, out)
	}
}

// flags returns the flags of every run. The job saves checkpoints only after signals of Slurm.
func (l *lesson) flags() []string {
	return []string{l.data, "--epochs", "30", "--hidden", "8", "--checkpoint-every", "off"}
}

// begin submits a job of four ranks with the script of "siafu submit",
// unchanged. Its ranks stand still before each gather, so that there is time to
// stop them.
func (l *lesson) begin(t *testing.T, still string, change func(*Job)) *scene {
	t.Helper()
	return begin(t, func(j *Job) {
		j.Program, j.Train = "", append(l.flags(), "--delay", "*:"+still+":1")
		if change != nil {
			change(j)
		}
	})
}

// learnt asserts that a run has ended with the model that it has if nothing
// disturbs it.
func (l *lesson) learnt(s *scene, run string, flags ...string) {
	s.Helper()
	r, err := runfolder.Read(run)
	if err != nil {
		s.Fatalf("%v\n%s", err, s.log())
	}
	for i, e := range r.Epochs {
		if e.Epoch != i+1 {
			s.Errorf("line %d of metrics.jsonl is of epoch %d", i+1, e.Epoch)
		}
	}
	if len(r.Epochs) != 30 {
		s.Errorf("%d epochs\n%s", len(r.Epochs), s.log())
	}
	undisturbed := filepath.Join(s.TempDir(), "undisturbed")
	l.must(s.T, slices.Concat([]string{"train"}, l.flags(), flags, []string{"--ranks", "4", "--out", undisturbed})...)
	got, errGot := os.ReadFile(r.Model)
	want, errWant := os.ReadFile(filepath.Join(undisturbed, "model.safetensors"))
	if errGot != nil || errWant != nil || !bytes.Equal(got, want) {
		s.Errorf("the model is another than that of an undisturbed run: %v %v\n%s", errGot, errWant, s.log())
	}
}
