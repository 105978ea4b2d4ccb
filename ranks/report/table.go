package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/table"
	"siafu/ranks/runfolder"
)

// Options selects the runs to compare and the form of the result.
type Options struct {
	Runs    []string `arg:"" help:"Run folders, or folders that contain run folders."`
	By      []string `placeholder:"SETTING" help:"Average runs with equal values of these settings."`
	Over    []string `placeholder:"SETTING" help:"Average runs that differ in these settings only. Example: --over seed."`
	Columns []string `placeholder:"NAME" help:"Columns of the table: settings, numbers and metrics of summary.json by name, such as macro_f1 or val macro_f1; or all. Empty: those that fit 100 columns of a terminal."`
	CSV     bool     `name:"csv" help:"Print CSV instead of a table."`
	JSON    bool     `name:"json" help:"Print a JSON array instead of a table."`
	HTML    string   `name:"html" placeholder:"FILE" help:"HTML file for curves, bars, timelines and tables, self-contained."`
	Plots   string   `placeholder:"DIR" help:"Folder for curves and bars (PNG, SVG) and the table (Markdown, CSV)."`
}

// Run compares the runs. The error lists unreadable runs. Run prints the others first.
func (o Options) Run(w io.Writer) error {
	runs, failed := Find(o.Runs)
	if len(runs) == 0 {
		return failed
	}
	t, err := o.compare(runs)
	if err != nil {
		return err
	}
	if len(o.Columns) > 0 && (o.CSV || o.JSON) {
		return fault.New(fault.Usage, op, "", "--columns with --csv or --json").
			Then("leave --columns out: CSV and JSON contain every column")
	}
	if o.Columns, err = t.columnNames(o.Columns); err != nil {
		return err
	}
	if err := o.files(t, runs, failed); err != nil {
		return err
	}
	switch {
	case o.JSON:
		err = t.json(w)
	case o.CSV:
		err = t.csv(w)
	default:
		err = t.text(w, o.Columns)
		for _, r := range runs {
			if err == nil && !t.grouped && len(runs) <= maxSentences {
				_, err = fmt.Fprintln(w, sentence(r))
			}
		}
	}
	if err != nil {
		return err
	}
	return failed
}

// maxSentences is the maximal number of runs that each get a sentence below the table.
const maxSentences = 3

type comparison struct {
	settings []string // columns
	decided  []string // settings that runs decided
	numbers  []column
	grouped  bool
	groups   [][]*Run
}

// compare groups the runs, and chooses the columns of their table.
func (o Options) compare(runs []*Run) (*comparison, error) {
	numbers := columns(runs)
	if o.CSV || o.JSON || len(o.Columns) > 0 {
		numbers = addMetrics(numbers, runs)
	}
	t := &comparison{numbers: numbers, grouped: len(o.By)+len(o.Over) > 0}
	differing := Differing(runs)
	for _, name := range slices.Concat(o.By, o.Over) {
		if !slices.ContainsFunc(runs, func(r *Run) bool { _, ok := r.Settings[name]; return ok }) {
			return nil, fault.New(fault.Usage, op, "", "no run has the setting %q", name).
				Then("use a name from config.toml; these runs differ in %s", cmp.Or(strings.Join(differing, ", "), "none"))
		}
	}
	t.settings = o.By
	if len(o.By) == 0 {
		t.settings = slices.DeleteFunc(differing, func(name string) bool { return slices.Contains(o.Over, name) })
		t.decided = slices.DeleteFunc(slices.Clone(t.settings), func(name string) bool { return !isDecided(name, runs) })
		t.settings = append(slices.DeleteFunc(t.settings, func(name string) bool { return isDecided(name, runs) }), t.decided...)
	}
	if !t.grouped {
		for _, name := range []string{"servers", "ranks", "hidden", "layers", "model", "dataset"} { // the first columns of every table
			t.settings = slices.DeleteFunc(t.settings, func(s string) bool { return s == name })
			t.settings = slices.Insert(t.settings, 0, name)
		}
	}
	t.group(runs)
	return t, nil
}

// isDecided reports whether runs differ in a setting because some decided it themselves: the others have the same value.
func isDecided(name string, runs []*Run) bool {
	var other []string
	for _, r := range runs {
		if v := r.Settings[name]; !r.decided(name) && !slices.Contains(other, v) {
			other = append(other, v)
		}
	}
	return len(other) < 2 && slices.ContainsFunc(runs, func(r *Run) bool { return r.decided(name) })
}

// group groups runs with equal t.settings. Groups are in the order of their first runs.
func (t *comparison) group(runs []*Run) {
	if !t.grouped {
		for _, r := range runs {
			t.groups = append(t.groups, []*Run{r})
		}
		return
	}
	at := map[string]int{}
	for _, r := range runs {
		key := strings.Join(t.values(r), "\x00")
		k, ok := at[key]
		if !ok {
			k = len(t.groups)
			at[key], t.groups = k, append(t.groups, nil)
		}
		t.groups[k] = append(t.groups[k], r)
	}
}

// values returns the cells of a run's settings.
func (t *comparison) values(r *Run) []string {
	list := make([]string, len(t.settings))
	for i, name := range t.settings {
		list[i] = cmp.Or(r.Settings[name], "-")
	}
	return list
}

// head returns the names of the columns. A setting with the name of a number, such as epochs, is
// called "of epochs": the configured total.
func (t *comparison) head() []string {
	list := []string{"run"}
	if t.grouped {
		list[0] = "runs"
	}
	for _, name := range t.settings {
		if slices.ContainsFunc(t.numbers, func(c column) bool { return c.name == name }) {
			name = "of " + name
		}
		list = append(list, name)
	}
	for _, c := range t.numbers {
		list = append(list, c.name)
	}
	return append(list, stoppedBy)
}

// table returns a table with a row for each group. show formats the numbers.
func (t *comparison) table(show func(column, []float64) string) *table.Table {
	to := &table.Table{Head: t.head()}
	for _, g := range t.groups {
		row := []string{g[0].Dir}
		if t.grouped {
			row[0] = strconv.Itoa(len(g))
		}
		row = append(row, t.values(g[0])...)
		for _, c := range t.numbers {
			row = append(row, show(c, numbersOf(c, g)))
		}
		to.Rows = append(to.Rows, append(row, state(g)))
	}
	return to
}

// numbersOf returns the numbers of a column for the runs of a group that have one.
func numbersOf(c column, group []*Run) []float64 {
	var x []float64
	for _, r := range group {
		if v := c.of(r); !math.IsNaN(v) {
			x = append(x, v*c.scale)
		}
	}
	return x
}

// stoppedBy is the name of the last column, which has the texts of state.
const stoppedBy = "stopped by"

// state describes how the runs of a group ended, by their number and Summary.StoppedBy, such as
// "3 epochs, 1 patience". It omits the numbers if all ended in the same way.
func state(group []*Run) string {
	count := map[string]int{}
	var order []string
	for _, r := range group {
		word := "unfinished"
		if r.Summary != nil {
			word = r.Summary.StoppedBy
		}
		if count[word]++; count[word] == 1 {
			order = append(order, word)
		}
	}
	if len(order) == 1 {
		return order[0]
	}
	for i, word := range order {
		order[i] = fmt.Sprintf("%d %s", count[word], word)
	}
	return strings.Join(order, ", ")
}

func plusMinus(c column, x []float64) string {
	mean, deviation := MeanDeviation(x)
	switch {
	case len(x) == 0:
		return "-"
	case len(x) == 1 || deviation == 0:
		return strconv.FormatFloat(mean, 'f', c.decimals, 64)
	}
	return fmt.Sprintf("%.*f ± %.*f", c.decimals, mean, max(c.decimals, 1), deviation)
}

// MeanDeviation returns the mean of x and its standard deviation with n - 1 degrees of freedom.
// The deviation of fewer than two numbers is 0.
func MeanDeviation(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	if len(x) < 2 {
		return mean, 0
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return mean, math.Sqrt(deviation)
}

// csv writes the means as CSV. If runs are grouped, each number has another column for its
// deviation.
func (t *comparison) csv(w io.Writer) error {
	const suffix = " deviation"
	wide := *t
	if t.grouped {
		wide.numbers = nil
		for _, c := range t.numbers {
			spread := c
			spread.name += suffix
			wide.numbers = append(wide.numbers, c, spread)
		}
	}
	return wide.table(func(c column, x []float64) string {
		mean, deviation := MeanDeviation(x)
		switch {
		case len(x) == 0:
			return ""
		case t.grouped && strings.HasSuffix(c.name, suffix):
			mean = deviation
		}
		return strconv.FormatFloat(mean, 'g', -1, 64)
	}).CSV(w)
}

// json writes an array of objects, one per row. The numbers of groups have a mean and a deviation.
func (t *comparison) json(w io.Writer) error {
	type spread struct {
		Mean      float64 `json:"mean"`
		Deviation float64 `json:"deviation"`
		Runs      int     `json:"runs"`
	}
	list := []map[string]any{}
	for _, g := range t.groups {
		row := map[string]any{stoppedBy: state(g)}
		var dirs []string
		for _, r := range g {
			dirs = append(dirs, r.Dir)
		}
		row["run"] = dirs
		for i, v := range t.values(g[0]) {
			row[t.settings[i]] = v
		}
		for _, c := range t.numbers {
			x := numbersOf(c, g)
			mean, deviation := MeanDeviation(x)
			switch {
			case len(x) == 0:
				row[c.name] = nil
			case t.grouped:
				row[c.name] = spread{mean, deviation, len(x)}
			default:
				row[c.name] = mean
			}
		}
		list = append(list, row)
	}
	return table.JSON(w, list)
}

// sentence describes the result of a run and the paths of its files.
func sentence(r *Run) string {
	s := r.Summary
	if s == nil {
		return fmt.Sprintf("%s has not ended: %d epochs are done; siafu status says more", r.Dir, r.Lines)
	}
	model := filepath.Join(r.Dir, "model.safetensors")
	line := fmt.Sprintf("%s on %s answers %.1f %% of the test vertices right (always the most frequent class: %.1f %%%s); model in %s",
		s.Model, s.Dataset, 100*s.TestAccAtBestVal, 100*s.MajorityTestAcc, besideAccuracy(s), model)
	if score, _ := scoreOf([]*Run{r}); score != "acc" {
		line = fmt.Sprintf("%s on %s has a test %s of %.4f; model in %s", s.Model, s.Dataset, score, s.TestAccAtBestVal, model)
	}
	if s.StoppedBy == runfolder.Diverged {
		line = fmt.Sprintf("%s on %s diverged in epoch %d: lower --lr", s.Model, s.Dataset, s.Epochs)
		if s.BestEpoch > 0 {
			line += fmt.Sprintf("; the best weights before answer %.1f %% of the test vertices right; model in %s",
				100*s.TestAccAtBestVal, model)
		}
	}
	if dir := filepath.Join(r.Dir, runfolder.Predictions); runfolder.HasPredictions(r.Dir) {
		line += ", predictions in " + dir
	}
	return line
}

// besideAccuracy describes what a run optimised if that was not accuracy.
func besideAccuracy(s *runfolder.Summary) (text string) {
	if m := s.Metrics; m != nil && m.Test != nil && m.Test.BalancedAccuracy != nil && (!choosesByScore(s) || weighs(s)) {
		text += fmt.Sprintf("; balanced accuracy: %.1f %%", 100**m.Test.BalancedAccuracy)
	}
	if !choosesByScore(s) {
		text += "; weights chosen by --monitor " + s.Monitor
	}
	if weighs(s) {
		text += "; trained with --class-weights " + s.ClassWeights
	}
	return text
}
