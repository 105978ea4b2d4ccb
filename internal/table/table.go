// Package table formats tables: a Table has names of columns and rows of cells, and is written as aligned
// text, CSV or Markdown. Package ranks/report/chart writes it as HTML. JSON writes the records of a
// command that prints a table otherwise.
package table

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table is a table with cells aligned to the left, or to the right if made by Right. Rows have as many cells
// as Head.
type Table struct {
	Head    []string
	Rows    [][]string
	formats []string // by column; "" is %v
	align   string   // format of a width and a cell; "" is left
}

const left, right = "%-*s  ", "  %*s"

// Left returns a table for text: the cells of a column begin at one place. A column is a name, or a name
// and the format of its cells such as "share|%.1f %%".
func Left(columns ...string) *Table {
	t := &Table{Head: make([]string, len(columns)), formats: make([]string, len(columns))}
	for k, column := range columns {
		t.Head[k], t.formats[k], _ = strings.Cut(column, "|")
	}
	return t
}

// Right returns a table for numbers: the cells of a column end at one place, and lines are indented.
func Right(columns ...string) *Table {
	t := Left(columns...)
	t.align = right
	return t
}

// Add appends a row to a table of Left or Right. Texts ignore the format of their column.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for k, cell := range cells {
		row[k] = fmt.Sprint(cell)
		if _, isText := cell.(string); !isText && t.formats[k] != "" {
			row[k] = fmt.Sprintf(t.formats[k], cell)
		}
	}
	t.Row(row...)
}

// Row appends a row of texts. Cells that are missing at its end are empty.
func (t *Table) Row(cells ...string) {
	t.Rows = append(t.Rows, slices.Concat(cells, make([]string, len(t.Head)-len(cells))))
}

// Select returns a table of the columns with the given names, in the order of the names.
func (t *Table) Select(names ...string) *Table {
	selected := &Table{Head: names, Rows: make([][]string, len(t.Rows)), align: t.align}
	for _, name := range names {
		k := slices.Index(t.Head, name)
		for i, row := range t.Rows {
			selected.Rows[i] = append(selected.Rows[i], row[k])
		}
	}
	return selected
}

// Without returns a table without the columns with the given names.
func (t *Table) Without(names ...string) *Table {
	return t.Select(slices.DeleteFunc(slices.Clone(t.Head), func(name string) bool { return slices.Contains(names, name) })...)
}

// lines returns the head and the rows.
func (t *Table) lines() [][]string { return slices.Concat([][]string{t.Head}, t.Rows) }

// Widths returns the maximal number of characters of the cells of each column, and of a line of Text
// without an indentation.
func (t *Table) Widths() (columns []int, line int) {
	columns, line = make([]int, len(t.Head)), -2
	for k := range columns {
		for _, cells := range t.lines() {
			columns[k] = max(columns[k], utf8.RuneCountInString(cells[k]))
		}
		line += columns[k] + 2
	}
	return columns, line
}

// Text writes aligned lines without trailing spaces. Control characters become spaces.
func (t *Table) Text(w io.Writer) error {
	widths, _ := t.Widths()
	for _, line := range t.lines() {
		text := ""
		for k, cell := range line {
			text += fmt.Sprintf(cmp.Or(t.align, left), widths[k], oneLine(cell))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(text, " ")); err != nil {
			return err
		}
	}
	return nil
}

func oneLine(cell string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, cell)
}

// CSV writes the table as comma-separated values.
func (t *Table) CSV(w io.Writer) error { return csv.NewWriter(w).WriteAll(t.lines()) }

// Markdown writes the table for pages that GitHub and pandoc format.
func (t *Table) Markdown(w io.Writer) error {
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;")
	for _, line := range slices.Insert(t.lines(), 1, slices.Repeat([]string{"---"}, len(t.Head))) {
		text := "|"
		for _, cell := range line {
			text += " " + escape.Replace(oneLine(cell)) + " |"
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}

// JSON writes records with indentation, as --json prints them in place of tables.
func JSON(w io.Writer, records any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(records)
}
