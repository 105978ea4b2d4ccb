package digest

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
	"siafu/kernels/model"
	"siafu/ranks/config"
	"siafu/ranks/runfolder"
)

// fakeRunner is a runner whose trainings gain a number of points per epoch up to a limit, and
// take a time per epoch, selected by their flags.
type fakeRunner struct {
	gain, limit, seconds map[string]float64
	trials               []trials.Trial
}

func (m *fakeRunner) Run(_ context.Context, t trials.Trial, _ string) (*trials.Result, error) {
	m.trials = append(m.trials, t)
	pick := func(by map[string]float64) float64 {
		for flag, v := range by {
			if slices.Contains(t.Flags, flag) {
				return v
			}
		}
		return by[""]
	}
	epochs := 0
	for k, f := range t.Flags {
		if f == "--epochs" {
			epochs = len(t.Flags[k+1]) * 10 // 10 for one digit, 20 for two
		}
	}
	r := &trials.Result{Trial: t}
	for e := 1; e <= epochs; e++ {
		acc := min(pick(m.gain)*float64(e), pick(m.limit))
		r.Epochs = append(r.Epochs, runfolder.Epoch{Epoch: e, Loss: 1 - acc, ValAcc: &acc, Seconds: pick(m.seconds), GhostBytesSent: 2e6})
		if slices.Contains(t.Flags, "--measure-staleness") && e%trials.MeasuredEvery == 1 {
			r.Epochs[e-1].Staleness = &runfolder.Staleness{GradientError: 1 / float64(e), GradientNorm: 2,
				Layers: []runfolder.LayerStaleness{{Relative: 0.1}, {Relative: 0.25}}}
		}
		r.Summary.BestValAcc, r.Summary.TestAccAtBestVal = acc, acc
	}
	r.Epochs[0].Seconds = 1000 // the first counts for nothing
	r.Summary.PerRank = []runfolder.RankReport{{Role: "graph", Vertices: 200, Ghosts: 50, PeakRSSBytes: 3e6, ArrayBytes: 2e6},
		{Role: "server", PeakRSSBytes: 9e6}}
	return r, nil
}

// compare makes one part of two systems from fake trainings.
func compare(t *testing.T, m *fakeRunner, part string, change func(*bench)) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "g")
	if _, err := generate.Write(data, generate.Options{Name: "g", Vertices: 100, Edges: 400, Seed: 1}, false); err != nil {
		t.Fatal(err)
	}
	o := Options{Systems: []string{"DIGEST"}, Study: trials.Study{Data: []string{data}, Ranks: []int{4}, Models: []string{"gcn"},
		Rates:   []string{"200mbit", "10gbit"},
		Options: trials.Options{Only: []string{part}, Partitioner: "hash", Seeds: 2, Epochs: 20, Timed: 5, Turns: 1, Work: t.TempDir()}}}
	b := &bench{Options: o}
	if change != nil {
		change(b)
	}
	book, err := b.book()
	if err != nil {
		t.Fatal(err)
	}
	book.Runner = m
	var out bytes.Buffer
	if err := trials.Print(t.Context(), &out, op, "machine: a <b>", b.HTML, book); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// The page has the printed table, and replaces an older page or other file.
func TestPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	compare(t, two(), "table1", func(b *bench) { b.HTML = file })
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<h2>table1: accuracy and speed-up of an epoch</h2>", "<button type=\"button\">speed-up</button>",
		"<td>DIGEST</td>", "<td>4.00</td>", "machine: a &lt;b&gt;"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// exact training gains 5 points per epoch up to 80, DIGEST 4 up to 79.8, in a quarter of the
// time.
func two() *fakeRunner {
	return &fakeRunner{
		gain:    map[string]float64{"": 0.05, "every:10": 0.04},
		limit:   map[string]float64{"": 0.80, "every:10": 0.798},
		seconds: map[string]float64{"": 0.4, "every:10": 0.1},
	}
}

// Accuracy, time and bytes of an epoch, speed-up, and epochs and seconds to half a point
// below exact training: 79.5 % with the weights after 15 epochs of 0.4 s, or 19 of 0.1 s.
func TestTable(t *testing.T) {
	text := compare(t, two(), "table1", nil)
	for _, line := range []string{
		"g gcn 4 exact-wait 80.00 ± 0.00 80.00 ± 0.00 0.4000 1.00 2.00 15 6.00",
		"g gcn 4 DIGEST 79.80 ± 0.00 79.80 ± 0.00 0.1000 4.00 2.00 19 1.90",
		"21.82",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

// Accuracy alone needs no trainings over links.
func TestAccuracy(t *testing.T) {
	m := two()
	text := compare(t, m, "accuracy", nil)
	if !strings.Contains(text, "g gcn 4 DIGEST 79.80 ± 0.00 79.80 ± 0.00 2.00") ||
		slices.ContainsFunc(m.trials, func(t trials.Trial) bool { return t.Rate > 0 }) {
		t.Error(text)
	}
}

// A target that is not reached is reported, and such a system is never the fastest.
func TestNever(t *testing.T) {
	m := two()
	m.limit["every:10"] = 0.79
	text := compare(t, m, "links", nil)
	for _, line := range []string{"DIGEST 79.00 ± 0.00 never never", "fastest 79.50 exact-wait exact-wait"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if text := compare(t, two(), "links", nil); !strings.Contains(text, "fastest 79.50 DIGEST DIGEST") {
		t.Error(text)
	}
}

// Curves are sampled at fractions of the 8 s of exact training: after 0.8 s it has run two
// epochs, DIGEST eight. All points are in the file.
func TestCurves(t *testing.T) {
	var work string
	text := compare(t, two(), "figure3", func(b *bench) { work = b.Work })
	for _, line := range []string{"exact-wait 5.00, 0.950 10.00, 0.900", "DIGEST 16.00, 0.840 32.00, 0.680"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	csv, err := os.ReadFile(filepath.Join(work, "figure3.csv"))
	if err != nil || bytes.Count(csv, []byte("\n")) != 1+2*2*20 {
		t.Errorf("%v, %d lines", err, bytes.Count(csv, []byte("\n")))
	}
}

// The page has the curves of loss and accuracy of each graph, one line for each system, and only
// its systems in the legend. Points are means: the second epoch of DIGEST ends after 0.2 s.
func TestDrawnCurves(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	compare(t, two(), "figure3", func(b *bench) { b.HTML = page })
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	scaling := filepath.Join(t.TempDir(), "page.html")
	compare(t, two(), "figure5", func(b *bench) { b.HTML = scaling })
	if five, err := os.ReadFile(scaling); err != nil || !strings.Contains(string(five), "Figure 5, g") ||
		!strings.Contains(string(five), `class="line g1 `) {
		t.Errorf("%v, no line of DIGEST in figure 5", err)
	}
	for want, times := range map[string]int{"figure3, g, 4 ranks: training loss": 2, "figure3, g, 4 ranks: validation F1": 2,
		`class="line g0 `: 2, `class="line g1 `: 2, `class="line g2 `: 0} {
		if n := strings.Count(string(text), want); n < times || times == 0 && n > 0 {
			t.Errorf("%q is there %d times", want, n)
		}
	}
	var list []*trials.Result
	for range 2 {
		r, _ := two().Run(t.Context(), trials.Trial{Flags: []string{"every:10", "--epochs", "2"}}, "")
		list = append(list, r)
	}
	l := line(trials.System{Name: "DIGEST"}, list, 0.1, func(e runfolder.Epoch) *float64 { return e.ValAcc }, 100)
	if len(l.Points) != 10 || l.Points[1].X != 0.2 || l.Points[1].Y != 8 {
		t.Errorf("%+v", l.Points)
	}
	// Of a training that evaluates every second epoch, these epochs count.
	for _, r := range list {
		for k := 0; k < len(r.Epochs); k += 2 {
			r.Epochs[k].ValAcc = nil
		}
	}
	l = line(trials.System{Name: "LLCG"}, list, 0.1, func(e runfolder.Epoch) *float64 { return e.ValAcc }, 100)
	if len(l.Points) != 5 || l.Points[0].X != 0.2 || l.Points[0].Y != 8 {
		t.Errorf("%+v", l.Points)
	}
	for when, want := range map[float64]string{0.15: "-", 0.25: "8.00, ", 0.35: "8.00, "} {
		if got := at(list, trials.System{Name: "LLCG"}, 0.1, when); !strings.HasPrefix(got, want) {
			t.Errorf("after %g s: %s, want %s", when, got, want)
		}
	}
}

// Theorem 1: the error of the gradient is at most τ/M Σ_l ε_l (r₁ r₂)^(L-l) Σ_m Δ(G_m)^(L-l). With
// three layers, rows of layers 1 and 2 with errors of 0.5 and 0.25, and a degree of 10, the sum
// is 0.5·100 + 0.25·10 for constants of 1. Features, which have no error, do not count.
func TestBoundOfTheorem1(t *testing.T) {
	s := &runfolder.Staleness{Layers: []runfolder.LayerStaleness{{Layer: 1, Difference: 7}, {Layer: 2, Difference: 0.5},
		{Layer: 3, Difference: 0.25}}}
	if got := bound(s, 10); got != 52.5 {
		t.Errorf("%g", got)
	}
	text := compare(t, two(), "theorem1", nil)
	if !strings.Contains(text, "g 4 DIGEST 2, ") || strings.Contains(text, "exact-wait") {
		t.Error(text)
	}
}

// Table 4 has a line for GraphSAGE, whose network is the last value of --model.
func TestGraphSAGE(t *testing.T) {
	m := two()
	if text := compare(t, m, "table4", nil); !strings.Contains(text, "g 4 GraphSAGE 3.0 1.00 2.0") {
		t.Error(text)
	}
	flags := m.trials[len(m.trials)-1].Flags
	var c config.Config
	err := config.Parse(&c, "digest", flags...)
	if err != nil || c.Model != "sage" || c.Batch != "neighbor:25,10" {
		t.Errorf("%v, %s %s of %v", err, c.Model, c.Batch, flags)
	}
}

// The flags of every system are ones that train accepts, for all networks of the system.
func TestSystemsAreAccepted(t *testing.T) {
	for _, s := range Systems() {
		for _, network := range append([]string{"gcn"}, s.Networks...) {
			var c config.Config
			err := config.Parse(&c, "digest", new(bench).Flags(trials.Setting{Model: network}, s, "--partitioner", "hash")...)
			if err == nil {
				err = c.Validate()
			}
			if err != nil {
				t.Errorf("%s, %s: %v", s.Name, network, err)
			}
		}
	}
}

// Tables 2 and 3 have this machine and its graphs beside the paper's.
func TestTestbed(t *testing.T) {
	if text := compare(t, two(), "table2", nil); !strings.Contains(text, "GPUs 8 NVIDIA T4 none used") ||
		!strings.Contains(text, trials.Processor()) {
		t.Error(text)
	}
	if text := compare(t, two(), "table3", nil); !strings.Contains(text, "g 100 - ") {
		t.Error(text)
	}
}

// Memory is that of graph ranks, and ghosts are compared with own vertices.
func TestMemory(t *testing.T) {
	if text := compare(t, two(), "table4", nil); !strings.Contains(text, "DIGEST 3.0 1.00 2.0") {
		t.Error(text)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if text := compare(t, two(), "figure9", func(b *bench) { b.HTML = page }); !strings.Contains(text, "50 200 25.00 %") {
		t.Error(text)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "Figure 9: ghosts to own vertices") ||
		!strings.Contains(string(text), "g, 4 ranks") {
		t.Errorf("%v\n%s", err, text)
	}
}

// Errors belong to the epochs in which they were measured, up to the last; exact training has none.
func TestErrors(t *testing.T) {
	text := compare(t, two(), "figure10", nil)
	if !strings.Contains(text, "DIGEST 1.000, 0.250 0.250, 0.250 0.100, 0.250 0.053, 0.250 from") || strings.Contains(text, "exact-wait") {
		t.Error(text)
	}
}

// A timely system's accuracy comes from whole runs over the link, with a host for its
// server, and so do its seconds.
func TestTimely(t *testing.T) {
	m := two()
	text := compare(t, m, "figure7", func(b *bench) {
		b.Systems = []string{"DIGEST-A"}
	})
	if !strings.Contains(text, "straggler: --delay 0:400ms:1") || !strings.Contains(text, "DIGEST-A 79.80") {
		t.Error(text)
	}
	whole := 0
	for _, each := range m.trials {
		if !slices.Contains(each.Flags, "free") {
			continue
		}
		if whole++; each.Rate != 25e6 || each.Ranks != 5 || !slices.Contains(each.Flags, "0:400ms:1") {
			t.Errorf("%+v", each)
		}
	}
	if whole != 2 { // a seed each, for accuracy and time
		t.Errorf("%d trainings of DIGEST-A", whole)
	}
}

// Trainings beyond the time limit are named, and have no number.
func TestLate(t *testing.T) {
	m := two()
	compare(t, m, "table1", nil)
	if len(m.trials) != 2*2+2 {
		t.Errorf("%d trainings", len(m.trials))
	}
	late := two()
	text := compare(t, late, "table1", func(b *bench) { b.Hours = 1e-12 })
	if len(late.trials) != 0 || !strings.Contains(text, "6 trainings were not finished") ||
		!strings.Contains(text, "DIGEST - - - - - - -") {
		t.Errorf("%d trainings\n%s", len(late.trials), text)
	}
}

// Invalid options are refused.
func TestBadInput(t *testing.T) {
	good := Options{Study: trials.Study{Ranks: []int{4}, Models: []string{"gcn"}, Rates: []string{"1gbit"}, Scale: 0.01,
		Options: trials.Options{Seeds: 1, Epochs: 2, Timed: 2, Turns: 1, Work: t.TempDir()}}}
	for name, change := range map[string]func(*Options){
		"a part":   func(o *Options) { o.Only = []string{"table9"} },
		"a system": func(o *Options) { o.Systems = []string{"dgl"} },
		"ranks":    func(o *Options) { o.Ranks = nil },
		"seeds":    func(o *Options) { o.Seeds = 0 },
		"a rate":   func(o *Options) { o.Rates = []string{"fast"} },
	} {
		o := good
		change(&o)
		if _, err := o.Book(); fault.KindOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnitRows: DIGEST-rows divides rows by their norms (algorithm 1, line 11) in exactly the
// networks that train takes --norm l2 for.
func TestUnitRows(t *testing.T) {
	i := slices.IndexFunc(Systems(), func(s trials.System) bool { return s.Name == "DIGEST-rows" })
	for _, kind := range model.Kinds() {
		c := config.Defaults()
		c.Model, c.Norm = kind, "l2"
		takes := c.Validate() == nil
		flags := strings.Join(new(bench).Flags(trials.Setting{Model: kind}, Systems()[i]), " ")
		if strings.Contains(flags, "--norm l2") != takes {
			t.Errorf("%s takes --norm l2: %t, flags are %s", kind, takes, flags)
		}
		if flags := strings.Join(new(bench).Flags(trials.Setting{Model: kind}, Systems()[2]), " "); strings.Contains(flags, "--norm") {
			t.Errorf("DIGEST has the flags %s", flags)
		}
	}
}

// TestExactComputed: every table with exact training has a line, or a column, for exact training
// with computed ghost rows, with its own times and bytes.
func TestExactComputed(t *testing.T) {
	for part, want := range map[string]string{
		"table1":   "g gcn 4 exact-computed 80.00 ± 0.00 80.00 ± 0.00 0.2000 2.00 2.00 15 3.00",
		"figure3":  "g 4 exact-computed 10.00, 0.900 20.00",
		"figure4":  "exact-wait exact exact-computed DIGEST",
		"figure5":  "g exact-computed 0.4000 2.00 2.00 2.00",
		"table4":   "g 4 exact-computed 3.0 1.00 2.0",
		"links":    "g 4 exact-computed 80.00 ± 0.00 3.00 3.00",
		"accuracy": "g gcn 4 exact-computed 80.00 ± 0.00 80.00 ± 0.00 2.00",
	} {
		m := two()
		m.seconds["auto"] = 0.2 // the value of --recompute-ghosts
		text := compare(t, m, part, func(b *bench) { b.Systems = []string{"exact", "exact-computed", "DIGEST"} })
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", part, want, text)
		}
	}
	// The base of figure 5 is exact training, also if only other systems are compared.
	if text := compare(t, two(), "figure5", func(b *bench) { b.Systems = []string{"exact-wait"} }); !strings.Contains(text,
		"g exact-wait 0.4000 1.00 1.00 1.00") {
		t.Error(text)
	}
}
