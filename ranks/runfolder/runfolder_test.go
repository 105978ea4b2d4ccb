package runfolder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/internal/safetensors"
)

// begin claims a folder and begins a run in it.
func begin(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Claim{Out: dir, Name: "x"}.Take()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Begin(nil, nil); err != nil {
		t.Fatal(err)
	}
	return f
}

// fill writes a whole run.
func fill(t *testing.T, dir string) (*Folder, Summary) {
	t.Helper()
	f := begin(t, dir)
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
	// Two runs that start within a second get folders of their own.
	t.Chdir(t.TempDir())
	a, errA := Claim{Name: "cora"}.Take()
	b, errB := Claim{Name: "cora"}.Take()
	if errA != nil || errB != nil || a.Dir() == b.Dir() || !strings.HasPrefix(a.Dir(), filepath.Join("runs", "cora-")) {
		t.Errorf("%v %v %v %v", a, errA, b, errB)
	}
}

// A loss that is no number cannot be written down, and the fault says what to
// do.
func TestNotANumber(t *testing.T) {
	f := begin(t, filepath.Join(t.TempDir(), "run"))
	defer f.Close()
	zero := 0.0
	if err := f.AppendEpoch(Epoch{Epoch: 3, Loss: zero / zero}); err == nil || !strings.Contains(err.Error(), "--lr") {
		t.Errorf("%v", err)
	}
}

// A continued run removes the summary and unfinished files, and nothing else.
func TestContinue(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	fill(t, dir)
	id := ReadMarker(dir).ID
	leftBehind(t, dir, "config.toml")
	leftBehind(t, dir, "model.safetensors")
	for _, name := range []string{"config.toml.tmp-aaaaaaaaaaaaaaaa", "notes.txt", "notes.tmp-aaaaaaaaaaaaaaaa", "model.safetensors.tmp-mine"} {
		write(t, "x", dir, name)
	}
	metrics, err := os.ReadFile(filepath.Join(dir, Metrics))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Claim{Out: dir, Launch: "second"}.Take()
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(metrics), "\n")
	if err := f.Continue(map[string]string{"seed": "1"}, int64(len(first)+1)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"config.toml", "config.toml.tmp-aaaaaaaaaaaaaaaa", "lock", "log.txt", "metrics.jsonl", "model.safetensors", "model.safetensors.tmp-mine", "notes.tmp-aaaaaaaaaaaaaaaa", "notes.txt", "run.json"}
	if d := cmp.Diff(want, listing(t, dir)); d != "" {
		t.Error(d)
	}
	if lines, err := readEpochs(dir, true); err != nil || len(lines) != 1 {
		t.Errorf("%d lines, %v", len(lines), err)
	}
	if m := ReadMarker(dir); m == nil || m.ID != id || m.Launch != "second" || m.Of["seed"] != "1" {
		t.Errorf("%+v", m)
	}
}

func write(t *testing.T, text string, path ...string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path...), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func listing(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
