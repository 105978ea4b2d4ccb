package trials

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"siafu/internal/fault"
	"siafu/ranks/report/chart"
	"siafu/ranks/runfolder"
)

// counting is a runner that counts its trainings, or fails.
type counting struct {
	done    int
	failure error
	folders []string
}

func (c *counting) Run(_ context.Context, t Trial, folder string) (*Result, error) {
	c.done++
	c.folders = append(c.folders, folder)
	return &Result{Trial: t, Version: "1", Machine: "a box", Load: fmt.Sprint(c.done, ".0 2.0 3.0"),
		Epochs: []runfolder.Epoch{{Epoch: 1}}}, c.failure
}

func archiveOf(t *testing.T, dir string, hours float64, r Runner) *Archive {
	t.Helper()
	a, err := NewArchive("test", dir, hours)
	if err != nil {
		t.Fatal(err)
	}
	a.Runner = r
	return a
}

// A finished training is not repeated, by this archive or a later one. Failures are not
// stored, and there is no result after the time limit.
func TestArchive(t *testing.T) {
	dir, c, trial := t.TempDir(), &counting{failure: errors.New("no")}, Trial{Data: "g", Flags: []string{"--epochs", "5"}}
	if _, err := archiveOf(t, dir, 0, c).Get(t.Context(), trial); !errors.Is(err, c.failure) {
		t.Error(err)
	}
	c.failure = nil
	for range 2 {
		a := archiveOf(t, dir, 0, c)
		for range 2 {
			if r, err := a.Get(t.Context(), trial); err != nil || r == nil || len(r.Epochs) != 1 {
				t.Errorf("%+v, %v", r, err)
			}
		}
	}
	if c.done != 2 {
		t.Errorf("%d trainings", c.done)
	}
	a := archiveOf(t, dir, 1e-12, c)
	trial.Turn = 1
	for range 2 {
		if r, err := a.Get(t.Context(), trial); r != nil || err != nil || len(a.left) != 1 {
			t.Errorf("%+v, %v, %d left", r, err, len(a.left))
		}
	}
	bad := filepath.Join(dir, trial.key()+".json")
	if err := os.WriteFile(bad, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Get(t.Context(), trial); fault.KindOf(err) != fault.Data || !strings.Contains(err.Error(), bad) {
		t.Error(err)
	}
}

// endless is a runner whose trainings end only with their context.
type endless struct{}

func (endless) Run(ctx context.Context, _ Trial, _ string) (*Result, error) {
	<-ctx.Done()
	return nil, fault.New(fault.Runtime, "test", "", "interrupted")
}

// The time limit ends a running training, which writes a line every few seconds. Its numbers
// are missing, which is no fault. An interrupt is one.
func TestTimeLimitEndsTraining(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		a := archiveOf(t, dir, 0.01, endless{})
		a.Progress = &said
		start := time.Now()
		b := &Book{Name: "B", Archive: a, Parts: []Part{{Name: "t1",
			Write: func(s *Sheet) { s.Try("", Trial{Data: "graphs/g", Ranks: 2}, s.Runner) }}}}
		var out strings.Builder
		if err := Print(t.Context(), &out, "test", "", "", b); err != nil ||
			!strings.Contains(out.String(), "1 trainings were not finished within 0.01 hours") {
			t.Errorf("%v: %s", err, out.String())
		}
		if took := time.Since(start); took != 36*time.Second {
			t.Errorf("the training ended after %s", took)
		}
		lines := strings.Split(said.String(), "\n")
		if len(lines) != 9 || lines[7] != "test: training 1 (g on 2 ranks) runs for 35s, 1s left of 0.01 hours" {
			t.Errorf("%q", lines)
		}
	})
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	a := archiveOf(t, dir, 1, endless{})
	if r, err := a.Get(ctx, Trial{}); r != nil || err == nil || len(a.left) > 0 {
		t.Errorf("interrupted: %+v, %v, %d left", r, err, len(a.left))
	}
}

// The hours of an archive include the time before it was made.
func TestHoursSinceStart(t *testing.T) {
	c := &counting{}
	a := archiveOf(t, t.TempDir(), 1, c)
	a.Since(time.Now().Add(-2 * time.Hour))
	if r, err := a.Get(t.Context(), Trial{}); r != nil || err != nil || c.done > 0 || len(a.left) != 1 {
		t.Errorf("%+v, %v, %d trainings, %d left", r, err, c.done, len(a.left))
	}
}

// A recorded trial has its own folder; others have none.
func TestRecord(t *testing.T) {
	c := &counting{}
	a := archiveOf(t, t.TempDir(), 0, c)
	for _, trial := range []Trial{{Record: true}, {}} {
		if _, err := a.Get(t.Context(), trial); err != nil {
			t.Fatal(err)
		}
	}
	if c.folders[0] != a.Folder(Trial{Record: true}) || c.folders[0] == "" || c.folders[1] != "" {
		t.Error(c.folders)
	}
}

// A page has the parts of all books: the paper's results, why ours differ, tables, figures,
// and the trainings used. Lines of the second book follow the lines of the first one.
func TestPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	book := func(title string, c *counting) *Book {
		a := archiveOf(t, t.TempDir(), 0, c)
		return &Book{Name: title, Title: title, Archive: a, Keys: []string{"key of " + title}, Parts: []Part{{
			Name: "t1", Title: "times", Paper: "less", Why: "it is slower",
			Write: func(s *Sheet) {
				for turn := range 2 {
					s.Try("", Trial{Turn: turn}, s.Runner)
				}
				fmt.Fprint(s, "a\tnote\n\n")
				s.Columns("of", "s|%.1f", "x")
				s.Add(title, 1.5, math.NaN())
				s.Draw(&chart.Chart{Name: "bars", Title: "bars of " + title, Bars: []chart.Bar{{Name: "x", Value: 1, Text: "1"}}})
			},
		}}}
	}
	var out strings.Builder
	if err := Print(t.Context(), &out, "test", "machine: a <b>", file, book("A", &counting{}), book("B", &counting{})); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"machine: a &lt;b&gt;", "<h2>A, t1: times</h2>", "paper: less\nours: it is slower",
		"<td>A</td><td>1.5</td><td>-</td>", "<td>B</td>", "<li>a\tnote</li>\n<li>from",
		"bars of B", "key of A", `class="bar g0 `, `class="bar g1 `, "from 2 trainings; load before them 1 to 2; siafu 1; a box"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if !strings.Contains(out.String(), "A   1.5  -\na\tnote\n") { // lines are below the table, and are no rows
		t.Error(out.String())
	}
}

// A part that this machine cannot make ends a bench, or is a line if GoOn is set.
func TestGoOn(t *testing.T) {
	lacking := Part{Name: "t1", Write: func(s *Sheet) { s.Fail(fault.New(fault.Missing, "test", "", "no hosts")) }}
	after := Part{Name: "t2", Write: func(s *Sheet) { s.Columns("made") }}
	for goOn, want := range map[bool]string{false: "", true: "not run: test: no hosts"} {
		var out strings.Builder
		b := &Book{Parts: []Part{lacking, after}, Archive: archiveOf(t, t.TempDir(), 0, nil), GoOn: goOn}
		err := Print(t.Context(), &out, "test", "", "", b)
		if (err == nil) != goOn || strings.Contains(out.String(), "made") != goOn || !strings.Contains(out.String(), want) {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
}

// An unknown part is refused, and parts have the order in which they are named.
func TestChoose(t *testing.T) {
	all := []Part{{Name: "a"}, {Name: "b"}}
	if list, err := Choose("test", all, []string{"b", "a"}); err != nil || len(list) != 2 || list[0].Name != "b" {
		t.Error(list, err)
	}
	if _, err := Choose("test", all, []string{"c"}); fault.KindOf(err) != fault.Usage || !strings.Contains(err.Error(), "a, b") {
		t.Error(err)
	}
}

// Without trainings there are no numbers. The epoch of an accuracy follows from the mean over
// seeds: 50 and 70 % with the weights after the first epoch.
func TestNumbers(t *testing.T) {
	if mean, std := MeanStd(nil); !math.IsNaN(mean) || !math.IsNaN(std) || Number(mean, 1) != "-" || Number(math.Inf(1), 1) != "never" {
		t.Error(mean, std)
	}
	if got := PlusMinus([]float64{1, 3}); got != "2.00 ± 1.41" { // n - 1 degrees of freedom
		t.Error(got)
	}
	if got := fmt.Sprintf("%.1f %.1f", Compared{1, math.NaN()}, Compared{math.Inf(1), 2}); got != "1.0 (-) never (2.0)" {
		t.Error(got)
	}
	seed := func(first, second float64) *Result {
		return &Result{Epochs: []runfolder.Epoch{{ValAcc: &first}, {ValAcc: &second}}, Summary: runfolder.Summary{FinalValAcc: 0.9}}
	}
	list := []*Result{seed(0.1, 0.5), seed(0.1, 0.7)}
	for target, want := range map[float64]float64{10: 0, 59: 1, 61: 2, 91: math.Inf(1)} {
		if got := Reaching(list, target); got != want {
			t.Errorf("%g %%: after %g epochs, not %g", target, got, want)
		}
	}
	if got := Reaching(nil, 1); !math.IsNaN(got) {
		t.Error(got)
	}
}

// The counter is read when an epoch's line appears. Two lines at once are two epochs; the bytes
// before the first epoch are those before the first line without the bytes of one epoch. The
// last epoch is not counted, because a late look would count the final evaluation. A counter
// that fails, and a run with two epochs, have a reason in place of numbers.
func TestTrafficOfEpochs(t *testing.T) {
	path := filepath.Join(t.TempDir(), runfolder.Metrics)
	counter, failure := int64(0), error(nil)
	m := &meter{sent: func() (int64, error) { return counter, failure }, path: path, start: 50}
	lines := ""
	look := func(at int64, more string) {
		t.Helper()
		lines, counter = lines+more, at
		if err := os.WriteFile(path, []byte(lines), 0o666); err != nil {
			t.Fatal(err)
		}
		m.look()
	}
	m.look() // no file yet
	look(60, "")
	look(1000, "{}\n")
	look(1100, "")
	look(1300, "{}\n{}\n")
	two := *m
	two.marks = slices.Clone(m.marks)
	if got := two.traffic(); got.Missing == "" {
		t.Errorf("%+v with one mark before the last epoch", got)
	}
	look(9450, "{}\n")
	if got, want := m.traffic(), (Traffic{Setup: 800, Epoch: 150}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	failure = errors.New("no counter")
	look(1500, "{}\n")
	if got := m.traffic(); got.Missing != "no counter" || got.Epoch != 0 {
		t.Errorf("%+v", got)
	}
}
