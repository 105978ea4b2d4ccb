package runfolder

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"siafu/internal/fault"
	"siafu/internal/safetensors"
)

// begin claims a folder and begins a run in it.
func begin(t *testing.T, dir string) *Folder {
	t.Helper()
	f, err := Claim{Out: dir, Name: "x"}.Take()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Begin(nil, Lines{}); err != nil {
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
	for _, name := range []string{"config.toml.tmp-aaaaaaaaaaaaaaaa", "notes.txt", "notes.tmp-aaaaaaaaaaaaaaaa",
		"model.safetensors.tmp-mine"} {
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
	want := []string{"config.toml", "config.toml.tmp-aaaaaaaaaaaaaaaa", "lock", "log.txt", "metrics.jsonl", "model.safetensors",
		"model.safetensors.tmp-mine", "notes.tmp-aaaaaaaaaaaaaaaa", "notes.txt", "run.json"}
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

// A run whose folder is removed or replaced meanwhile fails to write, and creates no part of it again.
func TestRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	f, err := Claim{Out: dir}.Take()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(f.Begin(nil, Lines{}), f.AppendEpoch(Epoch{Epoch: 1})); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	fails := func() {
		t.Helper()
		if err := f.AppendEpoch(Epoch{Epoch: 2}); fault.KindOf(err) != fault.IO || !fault.Lasting(err) ||
			!strings.Contains(err.Error(), dir) {
			t.Error(err)
		}
	}
	fails()
	if exists(dir) {
		t.Error("the folder exists again")
	}
	other, err := Claim{Out: dir}.Take()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Begin(nil, Lines{}); err != nil {
		t.Fatal(err)
	}
	fails()
}

// endless is a metrics.jsonl that never ends. It counts the bytes that are read.
type endless struct{ read int }

const metricsLine = `{"epoch":7,"seconds":2}` + "\n"

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = metricsLine[(e.read+i)%len(metricsLine)]
	}
	e.read += len(b)
	return len(b), nil
}

// Epochs are read one at a time: the memory does not depend on the number of lines.
func TestScanEpochs(t *testing.T) {
	var from endless
	n := 0
	err := scanEpochs("x", &from, false, func(e *Epoch, end int64) bool {
		if n++; e.Epoch != 7 || end != int64(n*len(metricsLine)) {
			t.Fatalf("epoch %d with %d bytes", e.Epoch, end)
		}
		return n < 1000
	})
	if err != nil || n != 1000 || from.read > n*len(metricsLine)+longestLine {
		t.Errorf("%v after %d epochs and %d bytes", err, n, from.read)
	}
	long := strings.NewReader(metricsLine + strings.Repeat(" ", longestLine+1))
	if err := scanEpochs("x", long, false, func(*Epoch, int64) bool { return true }); fault.KindOf(err) != fault.Data ||
		!strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
}

// Lines are read and copied without those after them, and without an incomplete line.
func TestLines(t *testing.T) {
	dir := t.TempDir()
	f := begin(t, dir)
	defer f.Close()
	for k := range 3 {
		if err := f.AppendEpoch(Epoch{Epoch: k + 1}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = f.metrics.WriteString(`{"epoch":`)
	for _, tc := range []struct{ upTo, last, n int }{{0, 0, 0}, {2, 2, 2}, {9, 3, 3}} {
		l, last, err := LinesUpTo(dir, tc.upTo)
		n := 0
		err = errors.Join(err, l.Each(func(*Epoch) { n++ }))
		if err != nil || last != tc.last || n != tc.n {
			t.Errorf("up to %d: %d lines up to %d, %v", tc.upTo, n, last, err)
		}
	}
}
