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
)

const (
	textWidth  = 100 // columns of a terminal that a table fits
	labelWidth = 40  // of a run's folder
	valueWidth = 24  // of a setting
	gap        = 2   // between columns
)

// leastUseful are columns in the order in which they are left out of a table that is too
// wide: after settings in which the runs are equal, and before those in which they differ.
var leastUseful = []string{"servers", "layers", "ghost MiB", "majority", "seconds", "hidden", "ranks", "peak MiB", "dataset", "sent MiB", "of epochs", "epochs", "state"}

// allColumns is the value of --columns for every column.
const allColumns = "all"

// checkColumns refuses names of columns that the table does not have.
func (t *table) checkColumns(wanted []string) error {
	for _, name := range wanted {
		if name != allColumns && !slices.Contains(t.head()[1:], name) {
			return fault.New(fault.Usage, op, "", "--columns=%s: the table has no such column", name).
				Then("choose from %s; or all", strings.Join(t.head()[1:], ", "))
		}
	}
	return nil
}

// text writes an aligned table, with mean ± deviation of groups: of the wanted columns, or
// of those that fit.
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

// shortenLabels removes the folder that all of several runs are in from their labels, and
// returns it. It cuts long labels and settings in the middle.
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
		line[0] = shorten(line[0], labelWidth)
		for k := range t.settings {
			line[1+k] = shorten(line[1+k], valueWidth)
		}
	}
	return common
}

// shorten cuts a text that is longer than width in the middle.
func shorten(text string, width int) string {
	r := []rune(text)
	if len(r) <= width {
		return text
	}
	half := width / 2
	return string(r[:half]) + "…" + string(r[len(r)-half+1:])
}

// fit leaves columns out until the table fits textWidth, and returns their names. Settings
// by which runs are grouped stay.
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

// tableWidth returns the number of columns of a terminal that a table takes.
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

// selectColumns returns the columns with the names, in their order.
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
