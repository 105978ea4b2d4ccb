// Package table formats tables: a Table has names of columns and rows of cells, and is written as aligned
// text, CSV or Markdown. Package ranks/report/page writes it as HTML. JSON writes the records of a
// command that prints a table otherwise.
package table

import (
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
	Head []string
	Rows [][]string

	formats []string // by column; "" is %v
	right   bool
}

const gap = "  " // between columns

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
	t.right = true
	return t
}

// Add appends a row. Texts ignore the format of their column.
func (t *Table) Add(cells ...any) {
	row := make([]string, len(cells))
	for k, cell := range cells {
		text, isText := cell.(string)
		if row[k] = text; !isText {
			row[k] = fmt.Sprint(cell)
			if k < len(t.formats) && t.formats[k] != "" {
				row[k] = fmt.Sprintf(t.formats[k], cell)
			}
		}
	}
	t.Row(row...)
}

// Row appends a row of texts. Cells that are missing at its end are empty.
func (t *Table) Row(cells ...string) {
	t.Rows = append(t.Rows, slices.Concat(cells, make([]string, len(t.Head)-len(cells))))
}

// Select returns a table of the columns with the given names, in the order of the names. A name that
// the table lacks is omitted.
func (t *Table) Select(names ...string) *Table {
	selected := &Table{Rows: make([][]string, len(t.Rows)), right: t.right}
	for _, name := range names {
		k := slices.Index(t.Head, name)
		if k < 0 {
			continue
		}
		selected.Head = append(selected.Head, name)
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

// widths returns the maximal number of characters of the cells of each column.
func (t *Table) widths() []int {
	list := make([]int, len(t.Head))
	for _, line := range t.lines() {
		for k, cell := range line {
			list[k] = max(list[k], utf8.RuneCountInString(cell))
		}
	}
	return list
}

// Width returns the number of characters of the longest line of Text without an indentation.
func (t *Table) Width() int {
	sum := len(gap) * (len(t.Head) - 1)
	for _, width := range t.widths() {
		sum += width
	}
	return sum
}

// Text writes aligned lines without trailing spaces. Control characters become spaces.
func (t *Table) Text(w io.Writer) error {
	var text strings.Builder
	widths := t.widths()
	for _, line := range t.lines() {
		var b strings.Builder
		for k, cell := range line {
			fill := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(cell))
			if t.right {
				b.WriteString(gap + fill + cell)
			} else {
				b.WriteString(cell + fill + gap)
			}
		}
		text.WriteString(strings.TrimRight(strings.Map(noControl, b.String()), " ") + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func noControl(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// CSV writes the table as comma-separated values.
func (t *Table) CSV(w io.Writer) error { return csv.NewWriter(w).WriteAll(t.lines()) }

// Markdown writes the table for pages that GitHub and pandoc format.
func (t *Table) Markdown(w io.Writer) error {
	rule := slices.Repeat([]string{"---"}, len(t.Head))
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;")
	for _, line := range slices.Concat([][]string{t.Head, rule}, t.Rows) {
		text := make([]string, len(line))
		for k, cell := range line {
			text[k] = escape.Replace(strings.Map(noControl, cell))
		}
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(text, " | ")); err != nil {
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
