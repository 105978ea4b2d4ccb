package runfolder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/graph/fault"
	"siafu/ranks/safetensors"
)

// fill writes a whole run.
func fill(t *testing.T, dir string) (*Folder, Summary) {
	t.Helper()
	f, err := Create(dir, "x", true)
	if err != nil {
		t.Fatal(err)
	}
	acc := 0.5
	s := Summary{Dataset: "cora", Model: "gcn", Layers: 2, Hidden: 16, Ranks: 4, Servers: 1, Epochs: 2, PerRank: []RankReport{{Rank: 0}}}
	for _, err := range []error{
		f.WriteConfig(struct{ Epochs int }{2}),
		f.AppendEpoch(Epoch{Epoch: 1, Loss: 2, ValAcc: &acc, TaskSeconds: map[string]float64{"GA": 1}}),
		f.AppendEpoch(Epoch{Epoch: 2, Loss: 1}),
		f.WriteModel([]safetensors.Tensor{{Name: "w", Shape: []int{1}, Data: []float32{1}}}, nil),
		f.WriteSummary(s),
		f.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return f, s
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	_, want := fill(t, dir)
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, r.Summary); d != "" {
		t.Error(d)
	}
	if len(r.Epochs) != 2 || *r.Epochs[0].ValAcc != 0.5 || r.Epochs[1].ValAcc != nil || !strings.Contains(r.Config, "Epochs = 2") {
		t.Errorf("%+v", r)
	}
	var table strings.Builder
	if err := Report(&table, r, r); err != nil || strings.Count(table.String(), "gcn 2x16") != 2 || !strings.Contains(table.String(), "3+1") {
		t.Errorf("%v\n%s", err, &table)
	}
	// Two runs that start within a second get folders of their own.
	t.Chdir(t.TempDir())
	a, errA := Create("", "cora", false)
	b, errB := Create("", "cora", false)
	if errA != nil || errB != nil || a.Dir() == b.Dir() || !strings.HasPrefix(a.Dir(), filepath.Join("runs", "cora-")) {
		t.Errorf("%v %v %v %v", a, errA, b, errB)
	}
}

// What exists is replaced only by force, and only if it is a run folder.
func TestCreateRefuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	fill(t, dir)
	if _, err := Create(dir, "x", false); fault.KindOf(err) != fault.Usage {
		t.Errorf("%v", err)
	}
	f, err := Create(dir, "x", true)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := Read(dir); fault.KindOf(err) != fault.Missing || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("a run that has not ended: %v", err)
	}
	other := t.TempDir()
	precious := filepath.Join(other, "precious")
	if err := os.WriteFile(precious, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(other, "x", true); fault.KindOf(err) != fault.Usage {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
	if _, err := Create(filepath.Join(precious, "run"), "x", false); fault.KindOf(err) != fault.IO {
		t.Errorf("below a file: %v", err)
	}
}

// A loss that is no number cannot be written down, and the fault says what to
// do.
func TestNotANumber(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "run"), "x", false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zero := 0.0
	if err := f.AppendEpoch(Epoch{Epoch: 3, Loss: zero / zero}); err == nil || !strings.Contains(err.Error(), "--lr") {
		t.Errorf("%v", err)
	}
}

// A run that goes on removes what it said of its end and what was half
// written, and nothing else.
func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	fill(t, dir)
	for _, name := range []string{"config.toml.tmp-17", "model.safetensors.tmp-4", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Reopen(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var left []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if d := cmp.Diff([]string{"config.toml", "log.txt", "metrics.jsonl", "model.safetensors", "notes.txt"}, left); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	if lines, err := f.Lines(); err != nil || len(lines) != 2 {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}
