package neutronstar

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/bench/trials"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/ranks/runfolder"
)

// fakeRunner is a runner whose trainings cost fixed times and bytes, by --recompute-ghosts. The
// second repetition takes twice the time.
type fakeRunner struct {
	trials  []trials.Trial
	missing string // reason why interfaces are not counted
}

func (f *fakeRunner) Run(_ context.Context, t trials.Trial, _ string) (*trials.Result, error) {
	f.trials = append(f.trials, t)
	seconds, setup, rows, moved := 0.4, 1.0, int64(3e6), trials.Traffic{Setup: 1e6, Epoch: 4e6, Missing: f.missing}
	switch t.Flags[slices.Index(t.Flags, "--recompute-ghosts")+1] {
	case "all":
		seconds, setup, rows, moved.Setup, moved.Epoch = 0.1, 1.5, 0, 3.5e6, 1e6
	case "auto":
		seconds, setup, rows, moved.Setup, moved.Epoch = 0.2, 1.75, 1e6, 4e6, 2e6
	}
	seconds *= float64(1 + t.Turn)
	r := &trials.Result{Trial: t}
	for e := 1; e <= 3; e++ {
		r.Epochs = append(r.Epochs, runfolder.Epoch{Epoch: e, Seconds: seconds, Elapsed: setup + seconds*float64(e), GhostBytesSent: rows})
	}
	r.Epochs[0].Seconds, r.Epochs[0].Elapsed = 1000, 1000+setup // the first counts for nothing
	r.Summary.PerRank = []runfolder.RankReport{{Role: "graph", PeakRSSBytes: 5e6, ArrayBytes: 2e6},
		{Role: "graph", PeakRSSBytes: 4e6, ArrayBytes: 3e6},
		{Role: "server", PeakRSSBytes: 9e6, ArrayBytes: 9e6}}
	if t.Rate > 0 {
		r.Traffic = &moved
	}
	return r, nil
}

// compare makes one part from fake trainings.
func compare(t *testing.T, f *fakeRunner, part string) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "g")
	if _, err := generate.Write(data, generate.Options{Name: "g", Vertices: 100, Edges: 400, Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	book, err := Options{Data: []string{data}, Models: []string{"gcn"}, Hosts: []int{4, 2},
		Rates: []string{"200mbit", "1gbit"}, Partitioner: "hash",
		Epochs: 3, Turns: 2, Work: t.TempDir(), Only: []string{part}, Train: []string{"--hidden", "8"}}.Book()
	if err != nil {
		t.Fatal(err)
	}
	book.Runner = f
	var out bytes.Buffer
	if err := trials.Print(t.Context(), &out, op, "machine: m", "", book); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// Epochs without the first one, their bytes, memory of the largest graph rank, and the time and
// bytes before the first epoch: absolute, and beyond those of DepComm.
func TestTables(t *testing.T) {
	for part, lines := range map[string][]string{
		"process": {
			"g gcn 4 DepComm 0.4000 1.00 3.00 3.00 1.000 0.000",
			"g gcn 4 DepCache 0.1000 4.00 0.00 3.00 1.500 0.500",
			"g gcn 4 hybrid 0.2000 2.00 1.00 3.00 1.750 0.750",
		},
		"links": {
			"g gcn 4 200mbit DepComm 0.4000 1.00 3.00 4.00 5.00 3.00 1.000 0.000 1.00 0.00",
			"g gcn 4 200mbit DepCache 0.1000 4.00 0.00 1.00 5.00 3.00 1.500 0.500 3.50 2.50",
			"g gcn 4 1gbit hybrid 0.2000 2.00 1.00 2.00 5.00 3.00 1.750 0.750 4.00 3.00",
		},
		"hosts": {
			"handling 2 hosts, s/epoch 4 hosts, s/epoch",
			"g gcn 200mbit DepCache 0.1000 0.1000",
		},
	} {
		text := compare(t, &fakeRunner{}, part)
		for _, line := range append(lines, "1.81 to 14.25", "DepComm, DepCache and hybrid are") {
			if part == "hosts" && strings.HasPrefix(line, "1.81") {
				continue
			}
			if !strings.Contains(text, line) {
				t.Errorf("%s: no %q in\n%s", part, line, text)
			}
		}
	}
}

// Without counters the bytes of interfaces are a dash, with the reason below the table.
func TestUncounted(t *testing.T) {
	text := compare(t, &fakeRunner{missing: "no counters here"}, "links")
	if !strings.Contains(text, "DepCache 0.1000 4.00 0.00 - 5.00 3.00 1.500 0.500 - -") ||
		!strings.Contains(text, "not counted: no counters here") {
		t.Error(text)
	}
}

// Repetitions are interleaved. A training for one epoch in one process comes first, and makes
// the partitions of all others.
func TestTrainings(t *testing.T) {
	f := &fakeRunner{}
	compare(t, f, "links")
	if len(f.trials) != 1+2*2*len(handlings) {
		t.Fatalf("%d trainings", len(f.trials))
	}
	first := f.trials[0]
	if first.Rate != 0 || first.Ranks != 4 || !slices.Equal(first.Flags[len(first.Flags)-2:], []string{"--epochs", "1"}) {
		t.Errorf("first %+v", first)
	}
	var values []string
	for _, one := range f.trials[1:7] {
		flags := strings.Join(one.Flags, " ")
		if one.Rate != 25e6 || !strings.Contains(flags, "--hidden 8 --recompute-ghosts ") ||
			!strings.Contains(flags, "--partitioner hash") {
			t.Errorf("%+v", one)
		}
		values = append(values, one.Flags[slices.Index(one.Flags, "--recompute-ghosts")+1])
	}
	if got := strings.Join(values, " "); got != "none all auto none all auto" {
		t.Error(got)
	}
}

// A synthetic graph replaces missing datasets; invalid options are refused.
func TestOptions(t *testing.T) {
	good := Options{Models: []string{"gcn"}, Hosts: []int{2}, Rates: []string{"1gbit"}, Scale: 0.01, Epochs: 2, Turns: 1, Work: t.TempDir()}
	if _, err := good.Book(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(good.Work, "reddit-small-0.01", "meta.json")); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"a part": func(o *Options) { o.Only = []string{"table9"} },
		"hosts":  func(o *Options) { o.Hosts = []int{1} },
		"models": func(o *Options) { o.Models = nil },
		"epochs": func(o *Options) { o.Epochs = 1 },
		"turns":  func(o *Options) { o.Turns = 0 },
		"a rate": func(o *Options) { o.Rates = []string{"fast"} },
	} {
		o := good
		change(&o)
		if _, err := o.Book(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
