package importers

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"siafu/internal/fault"
	"siafu/internal/npy"
)

var parquetFormat = importer{
	entry:      entry{Name: "parquet", Help: "tables of vertices and edges, as `.parquet`"},
	recognises: hasNodes(parquetEndings), open: openParquet, endings: parquetEndings, after: warnOfDirection, weights: true,
}

var parquetEndings = []string{".parquet"}

// rowsAtOnce is the number of rows of a Parquet file that are decoded together.
const rowsAtOnce = 256

// openParquet reads the schema of a table in Apache Parquet. Columns must be plain values. Cells
// are converted to text from which numbers are restored exactly, so that the rest of an import is
// the same as for CSV.
func openParquet(at input) *tableFile {
	t := &tableFile{input: at, unit: "row"}
	t.readParquet(func(p *parquetReader) {
		t.decode(p.checkPages)
		p.columns()
	})
	t.checkNames()
	t.each = func(yield func(int64, [][]byte)) {
		t.readParquet(func(p *parquetReader) { p.rows(yield) })
	}
	return t
}

type parquetReader struct {
	*tableFile
	file   *os.File
	size   int64         // of the file
	head   *bufio.Reader // of headers of pages
	table  *parquet.File
	format []func(text []byte, v parquet.Value) []byte // of each column
	text   []byte                                      // of the row
	ends   []int                                       // of its cells in text
	cells  [][]byte                                    // of the row, in text
}

// decode runs a function that decodes bytes of the file. The decoder panics on some damaged
// files.
func (t *tableFile) decode(run func()) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			panic(r)
		default:
			check(t.damaged(fmt.Errorf("%v", r)))
		}
	}()
	run()
}

func (t *tableFile) damaged(err error) error {
	var failed syscall.Errno // none if the decoder reads before the first byte
	if errors.As(err, &failed) {
		return fault.System(t.op, t.path, err)
	}
	return (&fault.Error{Op: t.op, Kind: fault.Data, Path: t.path, Detail: "not a Parquet file, or a damaged one", Err: err}).
		Then("write it again, or write it as CSV")
}

// readParquet opens a table and calls use.
func (t *tableFile) readParquet(use func(*parquetReader)) {
	f, err := os.Open(t.path)
	t.system(err)
	defer f.Close()
	info, err := f.Stat()
	t.system(err)
	p := &parquetReader{tableFile: t, file: f, size: info.Size(), head: bufio.NewReader(f)}
	t.decode(func() {
		if p.table, err = parquet.OpenFile(f, p.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true)); err != nil {
			check(t.damaged(err))
		}
		p.formats()
	})
	use(p)
}

// columns reads the names of columns and the units of dates. An index stored by pandas has no
// name.
func (p *parquetReader) columns() {
	p.checkColumns(len(p.table.Root().Columns()))
	for _, c := range p.table.Root().Columns() {
		name := c.Name()
		if name == "__index_level_0__" {
			name = ""
		}
		p.names = append(p.names, name)
		p.units = append(p.units, dateUnit(c))
	}
}

func (p *parquetReader) formats() {
	for i, c := range p.table.Root().Columns() {
		text := valueFormat(c)
		if text == nil {
			what := "lists or groups"
			if c.Leaf() && !c.Repeated() {
				what = c.Type().String()
			}
			p.require(false, "write numbers, strings or booleans, one column for each", "column %d (%s): it holds %s", i+1, c.Name(), what)
		}
		p.format = append(p.format, text)
	}
}

// valueFormat returns a function that appends the text of a column's value; nil if its type
// cannot be a cell.
func valueFormat(c *parquet.Column) func([]byte, parquet.Value) []byte {
	if !c.Leaf() || c.Repeated() {
		return nil
	}
	switch c.Type().Kind() {
	case parquet.Boolean:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendBool(b, v.Boolean()) }
	case parquet.Float:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendFloat(b, float64(v.Float()), 'g', -1, 32) }
	case parquet.Double:
		return func(b []byte, v parquet.Value) []byte { return strconv.AppendFloat(b, v.Double(), 'g', -1, 64) }
	case parquet.Int32:
		return intFormat(c, func(v parquet.Value) (int64, uint64) { return int64(v.Int32()), uint64(v.Uint32()) })
	case parquet.Int64:
		return intFormat(c, func(v parquet.Value) (int64, uint64) { return v.Int64(), v.Uint64() })
	case parquet.Int96:
		return timestamp96
	case parquet.ByteArray:
		if _, decimal := logicalType(c).(*format.DecimalType); !decimal {
			return func(b []byte, v parquet.Value) []byte { return append(b, v.ByteArray()...) }
		}
	}
	return nil
}

func logicalType(c *parquet.Column) format.LogicalTypeValue {
	if l := c.Type().LogicalType(); l != nil {
		return l.Value
	}
	return nil
}

// intFormat returns the format of signed and unsigned whole numbers, and of decimals, which
// are whole numbers times a power of ten. Dates and times are formatted as their numbers.
func intFormat(c *parquet.Column, of func(parquet.Value) (int64, uint64)) func([]byte, parquet.Value) []byte {
	scale := int64(0)
	switch l := logicalType(c).(type) {
	case *format.IntType:
		if !l.IsSigned {
			return func(b []byte, v parquet.Value) []byte { _, u := of(v); return strconv.AppendUint(b, u, 10) }
		}
	case *format.DecimalType:
		scale = int64(l.Scale)
	}
	return func(b []byte, v parquet.Value) []byte {
		i, _ := of(v)
		if b = strconv.AppendInt(b, i, 10); scale != 0 {
			b = strconv.AppendInt(append(b, 'e'), -scale, 10)
		}
		return b
	}
}

// timestamp96 formats Spark's timestamps, nanoseconds of a Julian day, as microseconds since
// 1970-01-01, which is day 2,440,588.
func timestamp96(b []byte, v parquet.Value) []byte {
	x := v.Int96()
	nanos := int64(x[1])<<32 | int64(x[0])
	return strconv.AppendInt(b, (int64(x[2])-2_440_588)*day+nanos/1000, 10)
}

// dateUnit returns the unit of dates stored as numbers, "" for other columns.
func dateUnit(c *parquet.Column) string {
	if c.Leaf() && c.Type().Kind() == parquet.Int96 {
		return "us"
	}
	switch l := logicalType(c).(type) {
	case *format.DateType:
		return "days"
	case *format.TimestampType:
		switch l.Unit.Value.(type) {
		case *format.MilliSeconds:
			return "ms"
		case *format.MicroSeconds:
			return "us"
		case *format.NanoSeconds:
			return "ns"
		}
	}
	return ""
}

func (p *parquetReader) rows(yield func(int64, [][]byte)) {
	at := int64(0)
	for _, g := range p.table.RowGroups() {
		rows := g.Rows()
		p.group(rows, &at, yield)
		if err := rows.Close(); err != nil {
			check(p.damaged(err))
		}
	}
}

// group yields the rows of a row group; at counts them.
func (p *parquetReader) group(rows parquet.Rows, at *int64, yield func(int64, [][]byte)) {
	var batch [rowsAtOnce]parquet.Row
	for {
		n, end := 0, error(nil)
		p.decode(func() { n, end = rows.ReadRows(batch[:]) })
		for _, row := range batch[:n] {
			*at++
			p.decode(func() { p.row(*at, row) })
			yield(*at, p.cells)
		}
		switch {
		case errors.Is(end, io.EOF):
			return
		case end != nil:
			check(p.damaged(end))
		case n == 0:
			check(p.damaged(io.ErrUnexpectedEOF))
		}
	}
}

func (p *parquetReader) row(at int64, row parquet.Row) {
	if len(row) != len(p.names) {
		check(p.rowFault(at, "has %d values for %d columns", len(row), len(p.names)).Then("write the table again"))
	}
	p.text, p.ends = p.text[:0], p.ends[:0]
	for i, v := range row {
		if !v.IsNull() {
			p.text = p.format[i](p.text, v)
		}
		p.ends = append(p.ends, len(p.text))
	}
	p.cells = p.cells[:0]
	start := 0
	for i, end := range p.ends {
		cell := bytes.TrimSpace(p.text[start:end])
		if !utf8.Valid(cell) {
			check(p.fault(at, i, cell, "is not UTF-8").Then("write strings as UTF-8"))
		}
		p.cells, start = append(p.cells, cell), end
	}
}

// Upper bounds of a page: writers make pages of a megabyte, or of some hundred thousand values.
const (
	pageBytes  = 16 << 20
	pageValues = 1 << 20
)

// checkPages compares the sizes in all page headers with the actual bytes, before the decoder
// allocates memory.
func (p *parquetReader) checkPages() {
	for g, group := range p.table.Metadata().RowGroups {
		for i := range group.Columns {
			c := &group.Columns[i].MetaData
			begin := c.DataPageOffset
			if d := c.DictionaryPageOffset; d > 0 {
				if _, err := p.checkPage(c.Codec, d, p.size); err != nil {
					check(p.damaged(fmt.Errorf("row group %d column %d: dictionary: %w", g+1, i+1, err)))
				}
				begin = min(begin, d)
			}
			end := begin + c.TotalCompressedSize
			for at := c.DataPageOffset; at < end; {
				next, err := p.checkPage(c.Codec, at, end)
				if err != nil {
					check(p.damaged(fmt.Errorf("row group %d column %d: byte %d: %w", g+1, i+1, at, err)))
				}
				at = next
			}
		}
	}
}

// checkPage checks the header of the page at a byte of the file; next is after the page.
func (p *parquetReader) checkPage(codec format.CompressionCodec, at, end int64) (next int64, err error) {
	if at < 0 || end > p.size || at >= end {
		return 0, fmt.Errorf("a page starts at byte %d of %d", at, end)
	}
	section := io.NewSectionReader(p.file, at, end-at)
	p.head.Reset(section)
	var h format.PageHeader
	if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(p.head)).Decode(&h); err != nil {
		return 0, err
	}
	read, _ := section.Seek(0, io.SeekCurrent)
	read -= int64(p.head.Buffered())
	packed, unpacked := int64(h.CompressedPageSize), int64(h.UncompressedPageSize)
	values := max(h.DataPageHeader.V.NumValues, h.DataPageHeaderV2.V.NumValues, h.DictionaryPageHeader.V.NumValues)
	switch {
	case packed < 0 || packed > end-at-read:
		return 0, fmt.Errorf("a page has %d bytes, but %d are left", packed, end-at-read)
	case unpacked < 0 || unpacked > pageBytes+npy.Deflated*packed:
		return 0, fmt.Errorf("a page claims %d bytes, compressed to %d", unpacked, packed)
	case values < 0 || int64(values) > pageValues+8*npy.Deflated*packed:
		return 0, fmt.Errorf("a page claims %d values in %d bytes", values, packed)
	}
	levels := int64(h.DataPageHeaderV2.V.DefinitionLevelsByteLength) + int64(h.DataPageHeaderV2.V.RepetitionLevelsByteLength)
	if levels < 0 || levels > packed {
		return 0, fmt.Errorf("a page of %d bytes claims %d bytes of levels", packed, levels)
	}
	p.head.Discard(int(levels))
	begin, _ := p.head.Peek(int(min(packed-levels, zstd.HeaderMaxSize)))
	if claim := claimed(codec, begin); claim > uint64(unpacked) {
		return 0, fmt.Errorf("a page of %d bytes decompresses to %d bytes", unpacked, claim)
	}
	return at + read + packed, nil
}

// claimed returns the unpacked length that compressed bytes announce in their first bytes.
func claimed(codec format.CompressionCodec, begin []byte) uint64 {
	switch codec {
	case format.Snappy:
		n, _ := binary.Uvarint(begin)
		return n
	case format.Zstd:
		var h zstd.Header
		if h.Decode(begin) == nil && h.HasFCS {
			return h.FrameContentSize
		}
	}
	return 0
}
