package importers

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"siafu/internal/fault"
)

const (
	debOp = "import debian"
	// debLineLimit bounds the memory of one line. The longest line of a real archive, a
	// Provides of the Rust packages, has some 40 KB.
	debLineLimit = 4 << 20
)

// debWanted are the fields that the importer reads, in lower case: names of
// fields are case-insensitive. Everything else is skipped unread.
var debWanted = map[string]bool{
	"package": true, "version": true, "section": true, "provides": true,
	"description": true, "description-en": true,
	"depends": true, "pre-depends": true, "recommends": true, "suggests": true, "enhances": true,
}

// debRelations are the fields whose packages become neighbours, in the order of debSays.
var debRelations = []string{"depends", "pre-depends", "recommends", "suggests", "enhances"}

// debField is the value of a field, folded lines joined by newlines, and the
// line of the file on which it starts.
type debField struct {
	value string
	line  int
}

// debCursor reads stanzas ("Name: value" lines up to an empty line) one after
// the other. Its error is sticky: after the first one there is no next stanza.
type debCursor struct {
	lines *bufio.Scanner
	path  string
	line  int
	err   error
}

func newDebCursor(r io.Reader, path string) *debCursor {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), debLineLimit)
	return &debCursor{lines: s, path: path}
}

// fail records the first error, which is about the given line.
func (c *debCursor) fail(line int, format string, args ...any) {
	if c.err == nil {
		e := fault.New(fault.Data, debOp, c.path, "line %d: "+format, append([]any{line}, args...)...)
		c.err = e.Then(`the input must be the output of "apt-cache dumpavail"`)
	}
}

// next fills fields with the wanted fields of the next stanza and returns the
// line it starts on; ok is false at the end of the input and after an error.
func (c *debCursor) next(fields map[string]debField) (start int, ok bool) {
	clear(fields)
	f := debFold{into: fields}
	for c.err == nil && c.lines.Scan() {
		c.line++
		line := bytes.TrimRight(c.lines.Bytes(), " \t\r")
		switch {
		case len(line) == 0 && start == 0: // several empty lines are like one
		case len(line) == 0:
			f.flush()
			return start, true
		case line[0] == ' ' || line[0] == '\t':
			c.fold(&f, line, start)
		default:
			if start == 0 {
				start = c.line
			}
			f.flush()
			c.field(&f, line)
		}
	}
	c.readError()
	f.flush()
	return start, c.err == nil && start > 0
}

// field starts a new field with line, which is "Name: value".
func (c *debCursor) field(f *debFold, line []byte) {
	name, value, ok := bytes.Cut(line, []byte(":"))
	if !ok || !debFieldName(name) {
		c.fail(c.line, `%s is not a "Field: value" line`, debQuoted(line))
		return
	}
	key := strings.ToLower(string(name))
	if !debWanted[key] {
		f.name = ""
		return
	}
	if _, twice := f.into[key]; twice {
		c.fail(c.line, "field %s occurs twice in a stanza", debQuoted(name))
		return
	}
	f.name, f.line = key, c.line
	f.value = append(f.value[:0], bytes.TrimLeft(value, " \t")...)
}

// fold appends a continuation line to the current field.
func (c *debCursor) fold(f *debFold, line []byte, start int) {
	if start == 0 {
		c.fail(c.line, "%s continues a field, but none is before it", debQuoted(line))
		return
	}
	if f.name != "" {
		f.value = append(append(f.value, '\n'), line...)
	}
}

// readError turns an error of the reader, which ended the lines, into ours.
func (c *debCursor) readError() {
	err := c.lines.Err()
	switch {
	case err == nil || c.err != nil:
	case errors.Is(err, bufio.ErrTooLong):
		c.fail(c.line+1, "longer than %d bytes", debLineLimit)
	default:
		e := fault.System(debOp, c.path, err)
		if debCorrupt(err) {
			e = fault.New(fault.Data, debOp, c.path, "after line %d: %v", c.line, err).Then("write the file again")
		}
		c.err = e
	}
}

// debFold is the field being read. An unwanted one has no name.
type debFold struct {
	into  map[string]debField
	name  string
	line  int
	value []byte
}

func (f *debFold) flush() {
	if f.name != "" {
		f.into[f.name] = debField{string(f.value), f.line}
	}
	f.name = ""
}

// debFieldName reports whether name is valid: printable ASCII without a blank or a colon
// (Debian policy 5.1).
func debFieldName(name []byte) bool {
	for _, b := range name {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return len(name) > 0
}

// debQuoted formats a value for an error message: quoted, and shortened if long.
func debQuoted[T string | []byte](v T) string {
	const most = 60
	if len(v) > most {
		return strconv.Quote(string(v[:most])) + "…"
	}
	return strconv.Quote(string(v))
}
