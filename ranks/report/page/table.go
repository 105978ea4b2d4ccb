package page

import "strings"

// ReadTable takes a text of cells that end with tabs apart, as a tabwriter gets it: the
// first line with cells is the head, and lines without are returned beside the table.
func ReadTable(text string) (t *Table, beside []string) {
	t = &Table{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		cells := strings.Split(strings.TrimSuffix(line, "\t"), "\t")
		switch {
		case strings.TrimSpace(line) == "":
		case !strings.Contains(line, "\t"):
			beside = append(beside, line)
		case t.Head == nil:
			t.Head = cells
		default:
			for len(cells) < len(t.Head) {
				cells = append(cells, "")
			}
			t.Rows = append(t.Rows, cells)
		}
	}
	return t, beside
}
