package report

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"siafu/internal/fault"
	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
)

// losses returns a run whose epochs had these losses and ended at these seconds.
func losses(loss, elapsed []float64) *Run {
	r := &Run{}
	add := r.sample()
	for i, l := range loss {
		add(&runfolder.Epoch{Epoch: i + 1, Loss: l, Seconds: 1, Elapsed: elapsed[i]})
	}
	return r
}

// A course is the mean over runs, at the mean of their seconds, up to the last epoch that
// half of them have. Runs of older versions have the sum of their epochs' seconds.
func TestCourse(t *testing.T) {
	group := []*Run{losses([]float64{4, 2, 1}, []float64{1, 2, 4}), losses([]float64{2, 2}, []float64{3, 6}),
		losses([]float64{3}, []float64{0})}
	epochs, seconds := meanCurve(group, metrics(nil)[0].of)
	want := []chart.Point{{X: 1, Y: 3, Deviation: 1}, {X: 2, Y: 2}}
	if d := cmp.Diff(want, epochs, cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Error(d)
	}
	want[0].X, want[1].X = 5/3.0, 4
	if d := cmp.Diff(want, seconds, cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Error(d)
	}
	if epochs, _ := meanCurve(group, metrics(nil)[1].of); epochs != nil {
		t.Errorf("validation losses that nobody has: %v", epochs)
	}
}

// A run that has not ended belongs to the group of those like it, since its log says
// what it trains on.
func TestUnfinishedInItsGroup(t *testing.T) {
	dir := grid(t)
	run := lay(t, filepath.Join(dir, "late"), "codec = \"none\"\nseed = 3", 0)
	log := "dataset name=g vertices=3\nworld kind=mpi ranks=4 servers=1 parts=3\n"
	if err := os.WriteFile(filepath.Join(run, "log.txt"), []byte(log), 0o666); err != nil {
		t.Fatal(err)
	}
	text := words(said(t, Options{Runs: []string{dir}, Over: []string{"seed"}}))
	if !strings.HasPrefix(text, "runs codec epochs") || !strings.Contains(text, "3 none 2 0.7500 ± 0.0707") {
		t.Error(text)
	}
}

// Plots replace plots, and no other folder; a page replaces a page, and no other file.
func TestOnlyTheirOwn(t *testing.T) {
	dir := grid(t)
	at := filepath.Join(t.TempDir(), "new", "plots")
	o := Options{Runs: []string{dir}, Over: []string{"seed"}, Plots: at, HTML: filepath.Join(filepath.Dir(filepath.Dir(at)), "page.html")}
	for range 2 {
		said(t, o)
	}
	for _, name := range []string{"loss-epochs.png", "loss-seconds.svg", "test-acc.svg", "report.csv", "report.md"} {
		if info, err := os.Stat(filepath.Join(at, name)); err != nil || info.Size() == 0 {
			t.Error(name, err)
		}
	}
	table, err := os.ReadFile(filepath.Join(at, "report.md"))
	if err != nil || !strings.Contains(string(table), "| 2 | none | 2 | 0.7500 ± 0.0707 |") {
		t.Errorf("%v: %s", err, table)
	}
	for _, path := range []string{filepath.Join(at, "notes.txt"), o.HTML} {
		if err := os.WriteFile(path, []byte("mine"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := o.Run(io.Discard); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
		os.Remove(path)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v: %v", err, entries)
	}
	if err := (Options{Runs: []string{dir}, Plots: dir}).Run(io.Discard); fault.KindOf(err) != fault.Usage {
		t.Errorf("a folder of runs: %v", err)
	}
}
