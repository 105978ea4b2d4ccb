package page

import "strings"

// ReadTable parses the input of a tabwriter, in which each cell ends with a tab. The first line
// with tabs is the head. beside has the lines without tabs.
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
