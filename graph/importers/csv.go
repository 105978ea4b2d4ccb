package importers

import (
	"bytes"

	"siafu/internal/fault"
)

// csvTable is one block of a file of comma-separated numbers: rows of cols numbers each. Such
// files of OGB have no header line and no quotes.
type csvTable[T any] struct {
	line   int64 // of the first row
	cols   int
	values []T // [rows x cols]
}

// csvParser returns a function that reads a block; number reads one field. All rows of a block
// must have the same number of fields.
func csvParser[T any](op, path string, number func([]byte) (T, bool)) func(block) (csvTable[T], error) {
	return func(b block) (csvTable[T], error) {
		// The maximum number of fields, from commas and line ends.
		most := bytes.Count(b.text, []byte{','}) + bytes.Count(b.text, []byte{'\n'}) + 1
		t := csvTable[T]{line: b.line, values: make([]T, 0, most)}
		for line, text := b.line, b.text; len(text) > 0; line++ {
			var row []byte
			row, text = nextLine(text)
			cols := 0
			for field, rest, ok := nextField(row); ok; field, rest, ok = nextField(rest) {
				v, good := number(field)
				if !good {
					return t, fault.New(fault.Data, op, path, "line %d column %d: %.40q is not a valid number here", line, cols+1, field).
						Then("correct the line, or fetch the file again")
				}
				t.values = append(t.values, v)
				cols++
			}
			if t.cols == 0 {
				t.cols = cols
			}
			if cols != t.cols {
				return t, fault.New(fault.Data, op, path, "line %d has %d columns, earlier lines have %d", line, cols, t.cols)
			}
		}
		return t, nil
	}
}

// sameCols compares the number of columns of a block with the expected number.
func (t csvTable[T]) sameCols(at place, cols int) error {
	if t.cols != cols {
		return at.bad("line %d has %d columns, expected %d", t.line, t.cols, cols)
	}
	return nil
}

// csvColumn reads a file with one whole number per line.
func csvColumn(at place) (out []int64) {
	check(parseFile(at.op, at.path, csvParser(at.op, at.path, parseInt), func(t csvTable[int64]) error {
		out = append(out, t.values...)
		return t.sameCols(at, 1)
	}))
	return out
}
