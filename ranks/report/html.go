package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"siafu/internal/table"
	"siafu/ranks/report/chart"
	"siafu/ranks/trace"
)

// files writes the requested page and plots.
func (o Options) files(t *comparison, runs []*Run, failed error) error {
	if o.HTML != "" {
		if err := t.page(runs, failed).Save(op, o.HTML); err != nil {
			return err
		}
	}
	if o.Plots == "" {
		return nil
	}
	return savePlots(o.Plots, t.plots(runs))
}

// page returns a page with everything about the runs.
func (t *comparison) page(runs []*Run, failed error) *chart.Page {
	p := &chart.Page{Title: "Runs", Lead: lead(t, runs)}
	if names := datasets(runs); len(names) > 0 {
		p.Title = "Runs on " + strings.Join(names, ", ")
	}
	for k, name := range t.names() {
		p.Keys = append(p.Keys, chart.Key{Group: k, Name: name})
	}
	p.Parts = append(p.Parts, chart.Part{Title: "Comparison", Table: t.differing()})
	if lines := problems(failed); len(lines) > 0 {
		p.Parts = append(p.Parts, chart.Part{Title: "Runs that could not be read", Lines: lines})
	}
	if unfinished := unfinished(runs); len(unfinished.Rows) > 0 {
		p.Parts = append(p.Parts, chart.Part{Title: "Runs that have not ended", Table: unfinished})
	}
	p.Parts = append(p.Parts, classParts(runs)...)
	curves, bars := t.figures()
	p.Parts = append(p.Parts, chart.Part{Title: "Curves", Text: t.explain(), Figures: figuresOf(curves)},
		chart.Part{Title: "Bars", Figures: figuresOf(bars)})
	if lanes := timelines(runs); len(lanes) > 0 {
		p.Parts = append(p.Parts,
			chart.Part{Title: "Timelines", Text: "What the workers of each rank did in two epochs. Gaps are time in no task.", Wide: lanes})
	}
	p.Parts = append(p.Parts, chart.Part{Title: "Settings of each run", Folded: true, Table: settingsTable(runs)},
		chart.Part{Title: "Settings that all runs share", Folded: true, Table: shared(runs)})
	p.Parts = slices.DeleteFunc(p.Parts, func(p chart.Part) bool {
		return len(p.Figures)+len(p.Wide)+len(p.Lines)+len(p.Parts) == 0 && (p.Table == nil || len(p.Table.Rows) == 0)
	})
	return p
}

// differing returns the table without settings in which several groups are equal. The page lists them
// elsewhere.
func (t *comparison) differing() *table.Table {
	var equal []string
	for k := range t.settings {
		if len(t.groups) > 1 && !t.isDiffering(k) {
			equal = append(equal, t.head()[1+k])
		}
	}
	return t.table(plusMinus).Without(equal...)
}

// lead returns the first sentences of the page: the number of runs and how they ended.
func lead(t *comparison, runs []*Run) string {
	line := fmt.Sprintf("%d runs", len(runs))
	if t.grouped {
		line += fmt.Sprintf(" in %d groups; means ± standard deviations over the runs of a group", len(t.groups))
	}
	// In StoppedBy, "epochs" means that the run has trained all epochs.
	return line + ". How they ended: " + strings.ReplaceAll(state(runs), "epochs", "after all epochs") + "."
}

// explain returns an explanation of lines and bands.
func (t *comparison) explain() string {
	if !t.grouped {
		return "One line per run."
	}
	return "A line shows the mean over the runs of a group. Its band is one standard deviation wide on either side. " +
		"In charts over time, a point is at the mean of the elapsed times of the runs. A line ends where fewer " +
		"than half of the runs continue."
}

func datasets(runs []*Run) []string {
	var names []string
	for _, r := range runs {
		if d := r.Settings["dataset"]; d != "" && !slices.Contains(names, d) {
			names = append(names, d)
		}
	}
	return names
}

// problems returns the texts of joined errors.
func problems(failed error) []string {
	if failed == nil {
		return nil
	}
	list := []error{failed}
	if joined, ok := failed.(interface{ Unwrap() []error }); ok {
		list = joined.Unwrap()
	}
	var lines []string
	for _, err := range list {
		lines = append(lines, err.Error())
	}
	return lines
}

// unfinished returns a table of the runs without a summary, with their progress.
func unfinished(runs []*Run) *table.Table {
	score, _ := scoreOf(runs)
	t := table.Left("run", "epochs", "of", "val "+score, "last written")
	for _, r := range runs {
		if r.Summary != nil {
			continue
		}
		at := "-"
		if last := r.Progress.Last.Time; !last.IsZero() {
			at = last.UTC().Format(time.DateTime)
		}
		newest := plusMinus(column{decimals: 4}, numbersOf(column{scale: 1, of: validation}, []*Run{r}))
		t.Add(r.Dir, r.Lines, cmp.Or(r.Settings["epochs"], "-"), newest, at)
	}
	return t
}

func figuresOf(charts []chart.Chart) []chart.Figure {
	var list []chart.Figure
	for _, c := range charts {
		list = append(list, chart.Figure{Title: c.Title, Draw: c.Draw})
	}
	return list
}

// maxTimelineBytes is the maximal size of a timeline that is drawn. siafu bench breakdown reads
// larger ones.
const maxTimelineBytes = 64 << 20

// timelines returns a figure for each run with a timeline.
func timelines(runs []*Run) []chart.Figure {
	var list []chart.Figure
	for _, r := range runs {
		f, err := trace.Read(r.timeline())
		if err != nil { // a run is reported without its timeline
			continue
		}
		from, to := chart.Epochs(f)
		figure := chart.Figure{Title: r.Dir, Draw: func(w io.Writer) error { return chart.Timeline(w, f, from, to) }}
		if figure.Draw(io.Discard) == nil {
			list = append(list, figure)
		}
	}
	return list
}

// timeline returns the path of the run's timeline: the path in the configuration, or a file in
// the run folder. It is empty if there is none.
func (r *Run) timeline() string {
	var paths []string
	if r.Trace != "" {
		paths = append(paths, r.Trace, filepath.Join(r.Dir, filepath.Base(r.Trace)))
	}
	entries, _ := os.ReadDir(r.Dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") {
			paths = append(paths, filepath.Join(r.Dir, e.Name()))
		}
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Size() <= maxTimelineBytes && trace.IsTimeline(path) {
			return path
		}
	}
	return ""
}

// settingsTable returns the settings that differ between runs.
func settingsTable(runs []*Run) *table.Table {
	t := &comparison{settings: Differing(runs)}
	t.group(runs)
	return t.table(plusMinus)
}

// shared returns the settings that are equal in all runs.
func shared(runs []*Run) *table.Table {
	differing := Differing(runs)
	t := table.Left("setting", "value")
	for _, name := range slices.Sorted(maps.Keys(runs[0].Settings)) {
		if !slices.Contains(differing, name) {
			t.Add(name, runs[0].Settings[name])
		}
	}
	return t
}
