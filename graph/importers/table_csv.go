package importers

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"siafu/graph"
)

var csvFormat = importer{
	entry:      entry{Name: "csv", Help: "tables of vertices and edges, as `.csv` or `.tsv`"},
	recognises: hasNodes(csvEndings), open: openCSV, endings: csvEndings, after: warnOfDirection, weights: true,
}

var csvEndings = []string{".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst"}

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
func openCSV(at input) *tableFile {
	t, delimiter := &tableFile{input: at, unit: "line"}, byte(0)
	t.readCSV(0, func(c *csvReader) {
		for _, name := range c.cells {
			t.names = append(t.names, string(name))
		}
		delimiter = c.delimiter
	})
	t.checkNames()
	t.each = func(yield func(int64, [][]byte)) {
		t.readCSV(delimiter, func(c *csvReader) { c.rows(yield) })
	}
	return t
}

type csvReader struct {
	*tableFile
	in        *bufio.Reader
	delimiter byte
	text      []byte   // of the row
	cells     [][]byte // of the row, in text
	first     int64    // line in which the row begins
	line      int64    // last line that was read
}

// readCSV opens a table, reads its heading into cells and calls use. It guesses the delimiter if
// that is 0.
func (t *tableFile) readCSV(delimiter byte, use func(*csvReader)) {
	f := openText(t.input)
	defer f.Close()
	c := &csvReader{tableFile: t, in: bufio.NewReaderSize(f, blockSize), delimiter: delimiter}
	c.heading()
	use(c)
}

func (c *csvReader) heading() {
	const mark = "\xef\xbb\xbf" // byte order mark of UTF-8, which some programs write
	begin, err := c.in.Peek(len(mark) + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		check(textFault(c.input, err))
	}
	for _, n := range notText {
		c.require(!bytes.HasPrefix(begin, []byte(n.magic)), n.remedy, "line 1 begins with %q: it is %s", n.magic, n.what)
	}
	if bytes.HasPrefix(begin, []byte(mark)) {
		c.in.Discard(len(mark))
	}
	c.require(c.record(), "write the column names in the first line", "line 1: it is empty")
	c.require(bytes.IndexByte(c.text, '\r') < 0 || bytes.IndexByte(c.text, '"') >= 0, lineEnds,
		"line 1 has a carriage return in its middle")
	if c.delimiter == 0 {
		c.delimiter = guessDelimiter(c.text)
		c.checkColumns(1 + bytes.Count(c.text, []byte{c.delimiter}))
	}
	c.split()
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

func (c *csvReader) rows(yield func(int64, [][]byte)) {
	for c.record() {
		c.split()
		if len(c.cells) != len(c.names) {
			check(c.rowFault(c.first, "has %d cells, the header has %d", len(c.cells), len(c.names)).
				Then("quote each cell that contains %q, and end each row after its last cell", c.delimiter))
		}
		yield(c.first, c.cells)
	}
}

// record reads the text of the next row that is not empty, and reports whether there is one. A row
// continues over line ends within quotes: it has an even number of quotes.
func (c *csvReader) record() bool {
	quotes := 0
	c.text = c.text[:0]
	for {
		part, err := c.in.ReadSlice('\n')
		c.text = append(c.text, part...)
		quotes += bytes.Count(part, []byte{'"'})
		end := errors.Is(err, io.EOF)
		if err != nil && !end && !errors.Is(err, bufio.ErrBufferFull) {
			check(textFault(c.input, err))
		}
		if len(c.text) > maxLine {
			check(c.rowFault(c.line+1, "is longer than %d bytes", maxLine).Then("close its open quote, or split the line"))
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if end && quotes%2 == 1 {
			check(c.rowFault(c.line+1, "has an unclosed quote: %.60q", c.text).
				Then("close the quote, and write a quote inside a cell twice"))
		}
		if !end && quotes%2 == 1 {
			continue
		}
		c.first = c.line + 1
		c.line += int64(bytes.Count(c.text, []byte{'\n'}))
		c.text = bytes.TrimRight(c.text, "\r\n")
		if len(c.text) > 0 || end {
			return len(c.text) > 0
		}
		quotes = 0
	}
}

func (c *csvReader) split() {
	c.cells = c.cells[:0]
	for rest, more := c.text, true; more; {
		var cell []byte
		var ok bool
		cell, rest, more, ok = c.cut(rest)
		if !ok {
			check(c.rowFault(c.first, "column %d: there is a quote inside the cell %.60q", len(c.cells)+1, cell).
				Then("quote the whole cell, and write a quote inside it twice"))
		}
		if !utf8.Valid(cell) {
			check(c.rowFault(c.first, "column %d: %.60q is not UTF-8", len(c.cells)+1, cell).
				Then("save the table as UTF-8 (iconv -f latin1 -t utf-8)"))
		}
		if len(cell) > 0 && cell[0] == '\'' { // predictions.csv escapes texts in this way
			cell = []byte(graph.UnguardCell(string(cell)))
		}
		c.cells = append(c.cells, cell)
	}
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
