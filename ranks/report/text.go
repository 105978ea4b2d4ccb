package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"siafu/internal/fault"
	"siafu/internal/table"
	"siafu/ranks/report/chart"
)

const (
	textWidth  = 100 // maximal width of the table in characters
	labelWidth = 40  // maximal width of the path of a run
	valueWidth = 24  // maximal width of a setting
)

// leastUseful lists columns in the order in which they are removed from a table that is too wide.
// Equal settings and those that runs decided are removed before them, other differing settings after them.
var leastUseful = []string{"disk MB/s", "disk MiB", "servers", "layers", "ghost MiB", "majority", "seconds", "hidden", "disk wait %",
	"ranks", "peak MiB", "dataset", "sent MiB", "of epochs", "epochs", stoppedBy, "val acc", "val score"}

// allColumns is the value of --columns for every column.
const allColumns = "all"

// columnNames returns the wanted columns by their names in the table, or a fault if it lacks one. The
// name of a metric alone stands for that of the test split.
func (t *comparison) columnNames(wanted []string) (names []string, err error) {
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
func (t *comparison) text(w io.Writer, wanted []string) error {
	shown, left := t.table(plusMinus), 0
	if common := t.shortenLabels(shown.Rows); common != "" {
		if _, err := fmt.Fprintf(w, "runs in %s\n", common); err != nil {
			return err
		}
	}
	switch {
	case slices.Contains(wanted, allColumns):
	case len(wanted) > 0:
		shown = shown.Select(append([]string{shown.Head[0]}, wanted...)...)
	default:
		shown, left = t.fit(shown)
	}
	if err := shown.Text(w); err != nil || left == 0 {
		return err
	}
	_, err := fmt.Fprintf(w, "%d columns do not fit; --columns all shows them\n", left)
	return err
}

// shortenLabels removes the common folder of several runs from their labels, and returns it. It
// shortens long labels and settings.
func (t *comparison) shortenLabels(rows [][]string) (common string) {
	if !t.grouped && len(rows) > 1 {
		common = filepath.Dir(rows[0][0])
		for _, row := range rows[1:] {
			for common != "." && common != "/" && !strings.HasPrefix(row[0], common+"/") {
				common = filepath.Dir(common)
			}
		}
		if common == "." || common == "/" {
			common = ""
		}
		for _, row := range rows {
			row[0] = strings.TrimPrefix(row[0], common+"/")
		}
	}
	for _, row := range rows {
		row[0] = chart.Shorten(row[0], labelWidth)
		for k := range t.settings {
			row[1+k] = chart.Shorten(row[1+k], valueWidth)
		}
	}
	return common
}

// fit removes columns until the table fits textWidth, and returns their number. It keeps the
// settings that group the runs.
func (t *comparison) fit(shown *table.Table) (fitting *table.Table, left int) {
	differs := func(name string) bool {
		k := slices.Index(shown.Head, name)
		return slices.Contains(t.settings, name) &&
			slices.ContainsFunc(shown.Rows, func(row []string) bool { return row[k] != shown.Rows[0][k] })
	}
	var order, last []string
	if len(shown.Rows) > 1 {
		order = slices.DeleteFunc(slices.Clone(t.settings), differs)
	}
	order = append(order, t.decided...)
	for _, name := range leastUseful {
		switch {
		case !differs(name):
			order = append(order, name)
		case !t.grouped:
			last = append(last, name)
		}
	}
	fitting = shown
	for _, name := range append(order, last...) {
		if _, width := fitting.Widths(); width > textWidth {
			fitting = fitting.Without(name)
		}
	}
	return fitting, len(shown.Head) - len(fitting.Head)
}
