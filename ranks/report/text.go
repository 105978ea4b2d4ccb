package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"siafu/internal/fault"
	"siafu/ranks/report/chart"
)

const (
	textWidth  = 100 // maximal width of the table in characters
	labelWidth = 40  // maximal width of the path of a run
	valueWidth = 24  // maximal width of a setting
	gap        = 2   // width between columns
)

// leastUseful lists columns in the order in which they are removed from a table that is too wide.
// Settings that are equal in all runs are removed before them, differing settings after them.
var leastUseful = []string{"disk MB/s", "disk MiB", "servers", "layers", "ghost MiB", "majority", "seconds", "hidden", "disk wait %", "ranks", "peak MiB", "dataset", "sent MiB", "of epochs", "epochs", stoppedBy}

// allColumns is the value of --columns for every column.
const allColumns = "all"

// columnNames returns the wanted columns by their names in the table, or a fault if it lacks one. The
// name of a metric alone stands for that of the test split.
func (t *table) columnNames(wanted []string) (names []string, err error) {
	known := t.head()[1:]
	for _, name := range wanted {
		if test := "test " + name; !slices.Contains(known, name) && slices.Contains(known, test) {
			name = test
		}
		if name != allColumns && !slices.Contains(known, name) {
			return nil, fault.New(fault.Usage, op, "", "--columns=%s: the table has no such column", name).
				Then("choose from %s; or all", strings.Join(known, ", "))
		}
		names = append(names, name)
	}
	return names, nil
}

// text writes an aligned table of the wanted columns, or of the columns that fit. Numbers of
// groups are mean ± deviation.
func (t *table) text(w io.Writer, wanted []string) error {
	lines := append([][]string{t.head()}, t.lines()...)
	if common := t.shortenLabels(lines); common != "" {
		if _, err := fmt.Fprintf(w, "runs in %s\n", common); err != nil {
			return err
		}
	}
	left := []string(nil)
	switch {
	case slices.Contains(wanted, allColumns):
	case len(wanted) > 0:
		lines = selectColumns(lines, append([]string{lines[0][0]}, wanted...))
	default:
		lines, left = t.fit(lines)
	}
	out := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(out, strings.Join(line, "\t"))
	}
	if err := out.Flush(); err != nil || left == nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d columns do not fit; --columns all shows them\n", len(left))
	return err
}

// shortenLabels removes the common folder of several runs from their labels, and returns it. It
// shortens long labels and settings.
func (t *table) shortenLabels(lines [][]string) (common string) {
	if !t.grouped && len(lines) > 2 {
		common = filepath.Dir(lines[1][0])
		for _, line := range lines[2:] {
			for common != "." && common != "/" && !strings.HasPrefix(line[0], common+"/") {
				common = filepath.Dir(common)
			}
		}
		if common == "." || common == "/" {
			common = ""
		}
		for _, line := range lines[1:] {
			line[0] = strings.TrimPrefix(line[0], common+"/")
		}
	}
	for _, line := range lines[1:] {
		line[0] = chart.Shorten(line[0], labelWidth)
		for k := range t.settings {
			line[1+k] = chart.Shorten(line[1+k], valueWidth)
		}
	}
	return common
}

// fit removes columns until the table fits textWidth, and returns their names. It keeps the
// settings that group the runs.
func (t *table) fit(lines [][]string) (fitting [][]string, left []string) {
	differs := func(name string) bool {
		k := slices.Index(lines[0], name)
		return slices.Contains(t.settings, name) && slices.ContainsFunc(lines[1:], func(line []string) bool { return line[k] != lines[1][k] })
	}
	var order, last []string
	if len(lines) > 2 {
		order = slices.DeleteFunc(slices.Clone(t.settings), differs)
	}
	for _, name := range leastUseful {
		switch {
		case !differs(name):
			order = append(order, name)
		case !t.grouped:
			last = append(last, name)
		}
	}
	for _, name := range append(order, last...) {
		k := slices.Index(lines[0], name)
		if k < 0 {
			continue
		}
		if tableWidth(lines) <= textWidth {
			break
		}
		left = append(left, name)
		for i := range lines {
			lines[i] = slices.Delete(lines[i], k, k+1)
		}
	}
	return lines, left
}

// tableWidth returns the width of a table in characters.
func tableWidth(lines [][]string) int {
	width := -gap
	for k := range lines[0] {
		most := 0
		for _, line := range lines {
			most = max(most, utf8.RuneCountInString(line[k]))
		}
		width += most + gap
	}
	return width
}

// selectColumns returns the columns with the given names, in the order of the names.
func selectColumns(lines [][]string, names []string) [][]string {
	selected := make([][]string, len(lines))
	for _, name := range names {
		k := slices.Index(lines[0], name)
		for i, line := range lines {
			selected[i] = append(selected[i], line[k])
		}
	}
	return selected
}
