package importers

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"siafu/graph"
)

var csvFormat = &tableFormat{
	entry:   entry{Name: "csv", Help: "tables of vertices and edges, as `.csv` or `.tsv`"},
	endings: []string{".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst"}, open: openCSV,
}

// notText lists file types that are not text, by their first bytes, with a remedy for each.
var notText = []struct{ magic, what, remedy string }{
	{"\x1f\x8b", "compressed with gzip", "rename it to end in .gz"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd", "rename it to end in .zst"},
	{"BZh", "compressed with bzip2, which is not supported", "decompress it, or compress it with gzip or zstd"},
	{"\xfd7zXZ", "compressed with xz, which is not supported", "decompress it, or compress it with gzip or zstd"},
	{"PAR1", "a Parquet file", "import it with --from parquet"},
	{"PK\x03\x04", "a zip archive or a spreadsheet", "save the table as CSV"},
	{"\xff\xfe", "UTF-16", "save it as UTF-8"},
	{"\xfe\xff", "UTF-16", "save it as UTF-8"},
}

// openCSV reads the heading of a table. Cells are separated by commas, tabs, semicolons or
// bars, whichever is most frequent in the heading, and may be quoted (RFC 4180).
func openCSV(op, path string) (*tableFile, error) {
	t := &tableFile{input: input{op, path}, unit: "line"}
	c, err := t.startCSV(0)
	if err != nil {
		return nil, err
	}
	defer c.file.Close()
	for _, name := range c.cells {
		t.names = append(t.names, string(name))
	}
	delimiter := c.delimiter
	t.each = func(yield func(int64, [][]byte) error) error {
		c, err := t.startCSV(delimiter)
		if err != nil {
			return err
		}
		defer c.file.Close()
		return c.rows(yield)
	}
	return t, t.checkNames()
}

// csvReader reads the rows of a table one after another.
type csvReader struct {
	*tableFile
	file      io.Closer
	in        *bufio.Reader
	delimiter byte
	text      []byte   // of the row
	cells     [][]byte // of the row, in text
	first     int64    // line in which the row begins
	line      int64    // last line that was read
}

// startCSV opens a table and reads its heading into cells; it guesses the delimiter if that is 0.
func (t *tableFile) startCSV(delimiter byte) (*csvReader, error) {
	f, err := openText(t.op, t.path)
	if err != nil {
		return nil, err
	}
	c := &csvReader{tableFile: t, file: f, in: bufio.NewReaderSize(f, blockSize), delimiter: delimiter}
	if err := c.heading(); err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

func (c *csvReader) heading() error {
	const mark = "\xef\xbb\xbf" // byte order mark of UTF-8, which some programs write
	begin, err := c.in.Peek(len(mark) + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return textFault(c.op, c.path, err)
	}
	for _, n := range notText {
		if bytes.HasPrefix(begin, []byte(n.magic)) {
			return c.bad("line 1 begins with %q: it is %s", n.magic, n.what).Then("%s", n.remedy)
		}
	}
	if bytes.HasPrefix(begin, []byte(mark)) {
		c.in.Discard(len(mark))
	}
	switch more, err := c.record(); {
	case err != nil:
		return err
	case !more:
		return c.bad("line 1: it is empty").Then("write the column names in the first line")
	}
	if c.delimiter == 0 {
		c.delimiter = guessDelimiter(c.text)
	}
	return c.split()
}

// guessDelimiter returns the most frequent delimiter in a heading, outside quotes.
func guessDelimiter(heading []byte) byte {
	var count [256]int
	quoted := false
	for _, b := range heading {
		if b == '"' {
			quoted = !quoted
		} else if !quoted {
			count[b]++
		}
	}
	best := byte(',')
	for _, d := range []byte("\t;|") {
		if count[d] > count[best] {
			best = d
		}
	}
	return best
}

// rows yields the rows below the heading.
func (c *csvReader) rows(yield func(int64, [][]byte) error) error {
	for {
		more, err := c.record()
		if err != nil || !more {
			return err
		}
		if err := c.split(); err != nil {
			return err
		}
		if len(c.cells) != len(c.names) {
			return c.rowFault(c.first, "has %d cells, the header has %d", len(c.cells), len(c.names)).
				Then("quote each cell that contains %q, and end each row after its last cell", c.delimiter)
		}
		if err := yield(c.first, c.cells); err != nil {
			return err
		}
	}
}

// record reads the text of the next row that is not empty. A row continues over line ends
// within quotes: it has an even number of quotes.
func (c *csvReader) record() (more bool, err error) {
	quotes := 0
	c.text = c.text[:0]
	for {
		part, err := c.in.ReadSlice('\n')
		c.text = append(c.text, part...)
		quotes += bytes.Count(part, []byte{'"'})
		end := errors.Is(err, io.EOF)
		if err != nil && !end && !errors.Is(err, bufio.ErrBufferFull) {
			return false, textFault(c.op, c.path, err)
		}
		if len(c.text) > maxLine {
			return false, c.rowFault(c.line+1, "is longer than %d bytes", maxLine).Then("close its open quote, or split the line")
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if end && quotes%2 == 1 {
			return false, c.rowFault(c.line+1, "has an unclosed quote: %.60q", c.text).Then("close the quote, and write a quote inside a cell twice")
		}
		if !end && quotes%2 == 1 {
			continue
		}
		c.first = c.line + 1
		c.line += int64(bytes.Count(c.text, []byte{'\n'}))
		c.text = bytes.TrimRight(c.text, "\r\n")
		if len(c.text) > 0 || end {
			return len(c.text) > 0, nil
		}
		quotes = 0
	}
}

// split cuts the text of a row into cells.
func (c *csvReader) split() error {
	c.cells = c.cells[:0]
	for rest, more := c.text, true; more; {
		var cell []byte
		var ok bool
		cell, rest, more, ok = c.cut(rest)
		if !ok {
			return c.rowFault(c.first, "column %d: there is a quote inside the cell %.60q", len(c.cells)+1, cell).
				Then("quote the whole cell, and write a quote inside it twice")
		}
		if !utf8.Valid(cell) {
			return c.rowFault(c.first, "column %d: %.60q is not UTF-8", len(c.cells)+1, cell).
				Then("save the table as UTF-8 (iconv -f latin1 -t utf-8)")
		}
		if len(cell) > 0 && cell[0] == '\'' { // predictions.csv escapes texts in this way
			cell = []byte(graph.UnguardCell(string(cell)))
		}
		c.cells = append(c.cells, cell)
	}
	return nil
}

// cut splits the first cell from a row, without its quotes and surrounding blanks; more
// reports whether another follows. ok is false for a misplaced quote.
func (c *csvReader) cut(text []byte) (cell, rest []byte, more, ok bool) {
	begin := bytes.TrimLeft(text, " ")
	if len(begin) == 0 || begin[0] != '"' {
		cell, rest, more = bytes.Cut(text, []byte{c.delimiter})
		return bytes.TrimSpace(cell), rest, more, bytes.IndexByte(cell, '"') < 0
	}
	begin = begin[1:]
	cell = begin[:0]
	for {
		end := bytes.IndexByte(begin, '"')
		if end < 0 {
			return text, nil, false, false
		}
		cell = append(cell, begin[:end]...)
		begin = begin[end+1:]
		if len(begin) == 0 || begin[0] != '"' {
			break
		}
		cell, begin = append(cell, '"'), begin[1:]
	}
	blank, rest, more := bytes.Cut(begin, []byte{c.delimiter})
	return cell, rest, more, len(bytes.TrimSpace(blank)) == 0
}
