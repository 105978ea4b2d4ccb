package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"siafu/internal/fault"
	"siafu/ranks/report/chart"
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
	t, err := o.table(runs)
	if err != nil {
		return err
	}
	if len(o.Columns) > 0 && (o.CSV || o.JSON) {
		return fault.New(fault.Usage, op, "", "--columns with --csv or --json").Then("leave --columns out: CSV and JSON contain every column")
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

type table struct {
	settings []string // columns
	numbers  []column
	grouped  bool
	groups   [][]*Run
}

// table returns the table of the runs.
func (o Options) table(runs []*Run) (*table, error) {
	numbers := columns(runs)
	if o.CSV || o.JSON || len(o.Columns) > 0 {
		numbers = addMetrics(numbers, runs)
	}
	t := &table{numbers: numbers, grouped: len(o.By)+len(o.Over) > 0}
	differing := Differing(runs)
	for _, name := range slices.Concat(o.By, o.Over) {
		if !slices.ContainsFunc(runs, func(r *Run) bool { _, ok := r.Settings[name]; return ok }) {
			return nil, fault.New(fault.Usage, op, "", "no run has the setting %q", name).Then("use a name from config.toml; these runs differ in %s", orNone(differing))
		}
	}
	t.settings = o.By
	if len(o.By) == 0 {
		t.settings = slices.DeleteFunc(differing, func(name string) bool { return slices.Contains(o.Over, name) })
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

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// group groups runs with equal t.settings. Groups are in the order of their first runs.
func (t *table) group(runs []*Run) {
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
func (t *table) values(r *Run) []string {
	list := make([]string, len(t.settings))
	for i, name := range t.settings {
		if list[i] = r.Settings[name]; list[i] == "" {
			list[i] = "-"
		}
	}
	return list
}

// head returns the names of the columns. A setting with the name of a number, such as epochs, is
// called "of epochs": the configured total.
func (t *table) head() []string {
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

// line returns the cells of a group. show formats the numbers.
func (t *table) line(group []*Run, show func(column, []float64) string) []string {
	list := []string{group[0].Dir}
	if t.grouped {
		list[0] = strconv.Itoa(len(group))
	}
	list = append(list, t.values(group[0])...)
	for _, c := range t.numbers {
		list = append(list, show(c, numbersOf(c, group)))
	}
	return append(list, state(group))
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

func (t *table) markdown(w io.Writer) error {
	lines := slices.Concat([][]string{t.head(), slices.Repeat([]string{"---"}, len(t.head()))}, t.lines())
	for _, line := range lines {
		for i, cell := range line {
			line[i] = strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(chart.Printable(cell))
		}
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(line, " | ")); err != nil {
			return err
		}
	}
	return nil
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
func (t *table) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	head, numbers := t.head(), len(t.settings)+1
	if t.grouped {
		var wide []string
		for k, name := range head {
			wide = append(wide, name)
			if k >= numbers && k < numbers+len(t.numbers) {
				wide = append(wide, name+" deviation")
			}
		}
		head = wide
	}
	lines := [][]string{head}
	for _, g := range t.groups {
		lines = append(lines, t.csvLine(g))
	}
	return out.WriteAll(lines)
}

func (t *table) csvLine(g []*Run) []string {
	const between = "\x00" // separates cells
	exact := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	line := t.line(g, func(_ column, x []float64) string {
		mean, deviation := MeanDeviation(x)
		switch {
		case len(x) == 0 && t.grouped:
			return between
		case len(x) == 0:
			return ""
		case t.grouped:
			return exact(mean) + between + exact(deviation)
		}
		return exact(mean)
	})
	return strings.Split(strings.Join(line, between), between)
}

// json writes an array of objects, one per row. The numbers of groups have a mean and a deviation.
func (t *table) json(w io.Writer) error {
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
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(list)
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
			line += fmt.Sprintf("; the best weights before answer %.1f %% of the test vertices right; model in %s", 100*s.TestAccAtBestVal, model)
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
