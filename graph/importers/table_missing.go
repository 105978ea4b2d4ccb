package importers

import (
	"slices"
	"strings"

	"siafu/graph"
)

// usualMissing are the texts of cells without a value, in any case, unless --missing names others.
var usualMissing = []string{"NA", "N/A", "#N/A", "<NA>", "NaN", "NaT", "NULL", "None", "unknown", "-", "?", `\N`}

// missingTexts are the texts of cells without a value. Empty cells have none either.
type missingTexts []string

// has reports whether a cell has no value.
func (m missingTexts) has(cell []byte) bool {
	if len(cell) == 0 {
		return true
	}
	for _, text := range m {
		if len(text) == len(cell) && strings.EqualFold(text, string(cell)) {
			return true
		}
	}
	return false
}

// findMissing chooses the texts of missing cells: those of the flag, of --like, or the usual ones.
// A schema of an earlier version has no list. Its categories and classes keep their names.
func (im *tableImport) findMissing() {
	switch {
	case im.like != nil && im.like.Table.Missing != nil:
		im.missing = im.like.Table.Missing
	case im.Missing != nil:
		im.missing = im.Missing
	default:
		im.missing = slices.Clone(usualMissing)
	}
	if im.like != nil && im.like.Table.Missing == nil {
		im.missing = slices.DeleteFunc(im.missing, func(text string) bool { return isValue(im.like, text) })
	}
}

// blank makes each yield empty cells for missing ones, except in the given columns. A vertex may be
// called NA.
func (t *tableFile) blank(m missingTexts, except ...int) {
	each := t.each
	t.each = func(yield func(int64, [][]byte)) {
		each(func(at int64, cells [][]byte) {
			for i, cell := range cells {
				if len(cell) > 0 && m.has(cell) && !slices.Contains(except, i) {
					cells[i] = nil
				}
			}
			yield(at, cells)
		})
	}
}

// isValue reports whether a text is a class or a category of a schema.
func isValue(s *graph.Schema, text string) bool {
	same := func(value string) bool { return strings.EqualFold(value, text) }
	return slices.ContainsFunc(s.ClassNames, same) ||
		slices.ContainsFunc(s.Table.Columns, func(c graph.Column) bool { return slices.ContainsFunc(c.Values, same) })
}
