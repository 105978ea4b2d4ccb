package sat

import (
	"bytes"
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"siafu/bench/trials"
	"siafu/graph/generate"
	"siafu/internal/fault"
	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
)

// fakeRunner is a runner whose trainings depend on --predict: transfer has more accuracy, arrays and
// seconds, and a tenth of the error. It refuses gru-gcn.
type fakeRunner struct{ trials []trials.Trial }

func (f *fakeRunner) Run(_ context.Context, t trials.Trial, _ string) (*trials.Result, error) {
	f.trials = append(f.trials, t)
	acc, relative, stale, predicting, arrays := 0.5, 0.2, (*float64)(nil), 0.0, int64(2e6)
	switch text := strings.Join(t.Flags, " "); {
	case strings.Contains(text, "--predict gru-gcn"):
		return nil, fault.New(fault.Usage, op, "", "no lines here")
	case strings.Contains(text, "--predict transfer"):
		received := relative
		stale, acc, relative, predicting, arrays = &received, 0.51, 0.02, 0.001, 2.5e6
	}
	r := &trials.Result{Trial: t}
	for e := 1; e <= 40; e++ {
		one := runfolder.Epoch{Epoch: e, Loss: 1 / float64(e), Seconds: 0.1, ValAcc: &acc, TestAcc: &acc, PredictSeconds: predicting}
		if slices.Contains(t.Flags, "--measure-staleness") && e%trials.MeasuredEvery == 1 {
			one.Staleness = &runfolder.Staleness{GradientNorm: 1 / float64(e), Layers: []runfolder.LayerStaleness{{Layer: 1, Relative: 0.9},
				{Layer: 2, Relative: relative, StaleRelative: stale}, {Layer: 3, Relative: 2 * relative, StaleRelative: stale}}}
		}
		r.Epochs = append(r.Epochs, one)
	}
	r.Summary.BestValAcc, r.Summary.TestAccAtBestVal = acc, acc
	r.Summary.PerRank = []runfolder.RankReport{{Role: "graph", ArrayBytes: 1e6}, {Role: "graph", ArrayBytes: arrays}}
	return r, nil
}

// compare makes one part from fake trainings.
func compare(t *testing.T, part string, kinds ...string) (string, *fakeRunner) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "flickr-0.01")
	if _, err := generate.Write(data, generate.Options{Name: "flickr-0.01", Vertices: 100, Edges: 400, Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	if kinds == nil {
		kinds = []string{"transfer", "gru-gcn"}
	}
	o := Options{Kinds: kinds, Study: trials.Study{Data: []string{data}, Ranks: []int{4, 8}, Models: []string{"gcn"},
		Rates:   []string{"200mbit", "1gbit"},
		Options: trials.Options{Only: []string{part}, Partitioner: "hash", Seeds: 2, Epochs: 40, Timed: 5, Turns: 1, Work: t.TempDir()}}}
	book, err := o.Book()
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeRunner{}
	book.Runner = f
	var out bytes.Buffer
	if err := trials.Print(t.Context(), &out, op, "machine: m", "", book); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " "), f
}

// TestParts: every part has the numbers of the trainings beside those of the paper, and dashes with
// the reason where train refuses a training.
func TestParts(t *testing.T) {
	const refusal = "-: bench sat: no lines here"
	for part, lines := range map[string][]string{
		"figure1": {"gcn 4 DIGEST none 0.200, 0.400 0.200, 0.400",
			"gcn 4 DIGEST transfer 0.020, 0.040 0.020, 0.040 0.020, 0.040 0.020, 0.040 - - 0.020, 0.040 0.100, 0.200", refusal},
		"table1": {"flickr-0.01 100 89,250"},
		"table2": {"gcn 4 DIGEST none 50.00 ± 0.00 50.00 ± 0.00 0.00 52.92±0.32",
			"gcn 8 DIGEST transfer 51.00 ± 0.00 51.00 ± 0.00 1.00 52.36±0.18", "gcn 4 DistDGL none 50.00",
			"gcn 4 DIGEST gru-gcn - - - 53.45±0.27",
			"transfer: at least as good as without in 6 of 6 cells (100 %), mean difference +1.00 points", refusal},
		"table3": {"DIGEST none 2.00 1.000 0.18", "DIGEST transfer 2.50 1.250 0.20 2.50 1.250 0.23"},
		"table4": {"gcnii 4 GNNAutoScale transfer 51.00 ± 0.00 51.00 ± 0.00 1.00 55.21±0.47",
			"gcn 4 GraphSAGE none 50.00 ± 0.00 50.00 ± 0.00 0.00 49.23±0.21"},
		"table5":   {"DIGEST transfer 10.00 0.0"},
		"figure3":  {"DIGEST transfer 51.00 51.00 51.00 51.00", "exact none 50.00"},
		"figure4":  {"DIGEST transfer 0.2500 0.1250 0.0500 0.0250 0.1000 0.00 0.1000 0.00"},
		"figure5a": {"DIGEST transfer 0.00100 1.00 0.00100 1.00 0.00100 1.00 0.00100 1.00"},
		"figure5b": {"GNNAutoScale transfer 51.00 ± 0.00 51.00 ± 0.00 0.020, 0.040 0.100, 0.200"},
		"figure5c": {"DIGEST transfer 51.00 ± 0.00 51.00 ± 0.00 0.00100", "transfer --predict rows=512 51.00"},
		"theorem":  {"exact none", "-0.667"},
	} {
		text, _ := compare(t, part)
		for _, line := range lines {
			if !strings.Contains(text, line) {
				t.Errorf("%s: no %q in\n%s", part, line, text)
			}
		}
	}
}

// TestTrainings: accuracies come from one process, with the flags of digest's systems, and times from
// links.
func TestTrainings(t *testing.T) {
	_, f := compare(t, "figure4")
	rates := map[float64]int{}
	for _, one := range f.trials {
		rates[one.Rate]++
		if text := strings.Join(one.Flags, " "); one.Rate == 0 && !strings.Contains(text, "--epochs 40 --eval-every 1 --seed ") {
			t.Errorf("flags %s", text)
		}
	}
	if want := map[float64]int{0: 7*2 + 3, 25e6: 7 + 3, 125e6: 7}; !maps.Equal(rates, want) { // three are refused
		t.Errorf("trainings by rate %v, want %v", rates, want)
	}
}

// TestOptionsOfKinds: only kinds that are trained get options of training.
func TestOptionsOfKinds(t *testing.T) {
	for part, option := range map[string]string{"figure5a": "every=", "figure5c": "window="} {
		for kind, want := range map[string]bool{"transfer": false, "lstm-gcn": true} {
			_, f := compare(t, part, kind)
			got := slices.ContainsFunc(f.trials, func(one trials.Trial) bool {
				return strings.Contains(strings.Join(one.Flags, " "), option)
			})
			if got != want || len(f.trials) == 0 {
				t.Errorf("%s of %s: %d trainings, with %s: %t", part, kind, len(f.trials), option, got)
			}
		}
	}
}

// TestCurves: the lines of figures have the groups of the page's legend.
func TestCurves(t *testing.T) {
	b := &bench{kinds: []string{"transfer"}}
	c := &chart.Chart{}
	for _, s := range b.curves() {
		addLine(c, s, []float64{1}, []float64{2})
	}
	for k, name := range b.keys() {
		if line := c.Lines[k]; line.Name != name || len(line.Points) != 1 {
			t.Errorf("line %+v, key %s", line, name)
		}
	}
}

// TestSlope: with norms of 1/e the mean of squares falls as 1/n of n measurements.
func TestSlope(t *testing.T) {
	r, _ := (&fakeRunner{}).Run(t.Context(), trials.Trial{Flags: []string{"--measure-staleness"}}, "")
	_, y, slope := meanSquares(r.Epochs)
	sum := 0.0
	for e := 1; e <= 40; e += trials.MeasuredEvery {
		sum += 1 / float64(e*e)
	}
	if want := math.Log(sum / 14); len(y) != 14 || math.Abs(y[13]-want) > 1e-12 || math.Abs(slope+1) > 0.1 {
		t.Errorf("%d points, the last is %v of %v, slope %v", len(y), y[len(y)-1], want, slope)
	}
}

// TestPaper: the sentence about table II counts its cells.
func TestPaper(t *testing.T) {
	good, cells := 0, 0
	for _, column := range test2.columns {
		graph, ranks, _ := strings.Cut(column, " ")
		for line := range strings.Lines(test2.text) {
			name, _, predicts := strings.Cut(line, "+ ")
			if !predicts {
				continue
			}
			if cells++; test2.of(name+"+", graph, ranks) >= test2.of(name, graph, ranks) {
				good++
			}
		}
	}
	if good != 34 || cells != 35 {
		t.Errorf("%d of %d", good, cells)
	}
}

// TestBadInput: invalid options are refused, and synthetic graphs replace missing datasets.
func TestBadInput(t *testing.T) {
	good := Options{Study: trials.Study{Ranks: []int{4}, Models: []string{"gcn"}, Rates: []string{"1gbit"}, Scale: 0.01,
		Options: trials.Options{Seeds: 1, Epochs: 2, Timed: 2, Turns: 1, Work: t.TempDir()}}}
	if _, err := good.Book(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(good.Work, "flickr-0.01", "meta.json")); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"a part": func(o *Options) { o.Only = []string{"table9"} },
		"a kind": func(o *Options) { o.Kinds = []string{"oracle"} },
		"ranks":  func(o *Options) { o.Ranks = []int{1} },
		"models": func(o *Options) { o.Models = nil },
		"seeds":  func(o *Options) { o.Seeds = 0 },
		"a rate": func(o *Options) { o.Rates = []string{"fast"} },
	} {
		o := good
		change(&o)
		if _, err := o.Book(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
