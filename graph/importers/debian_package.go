package importers

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// debLineLimit bounds the memory of one line. The longest line of a real archive, a Provides of
// the Rust packages, has some 40 KB.
const debLineLimit = 4 << 20

// debWanted are the fields that the importer reads, in lower case: names of fields are
// case-insensitive.
var debWanted = slices.Concat([]string{"package", "version", "section", "source", "maintainer", "description", "description-en"},
	debRelations, debMoreRelations)

// debMoreRelations are the fields that only relational graphs use as edges.
var debMoreRelations = []string{"breaks", "conflicts", "replaces", "provides"}

// debPackage is the data that the importer uses of a stanza.
type debPackage struct {
	name, version string
	section       string          // without the archive area, "" where unknown
	summary       string          // the short description
	relations     []debRelation   // packages in the relation fields, with repetitions
	source        string          // name of the source package
	maintainer    string          // mail address, or the whole field
	more          [][]debRelation // packages in each of debMoreRelations
}

type debArchive struct {
	input
	packages []debPackage    // by name, each name once
	names    *idIndex        // of the packages, in their order; empty until all are read
	virtual  map[string]bool // names that some package provides
	dropped  int             // stanzas superseded by another version
}

// readDebArchive reads every stanza of r. Of several versions of a package it uses the highest, and the first
// of equal ones (multi-arch machines list the same
// version once per architecture). With more, it reads the fields of relational graphs.
//
// Design note: packages are sorted by name, not in the order of the file, so that the dataset
// does not depend on the order of apt's lists.
func readDebArchive(r io.Reader, at input, more bool) *debArchive {
	a, index := &debArchive{input: at, virtual: map[string]bool{}, names: newIDIndex()}, map[string]int{}
	c := &debCursor{lines: bufio.NewScanner(r), input: at, more: more}
	c.lines.Buffer(make([]byte, 64<<10), debLineLimit)
	for fields, start := c.next(); start > 0; fields, start = c.next() {
		p := c.pkg(fields, start, a.virtual)
		i, known := index[p.name]
		switch {
		case !known:
			index[p.name] = len(a.packages)
			a.packages = append(a.packages, p)
			continue
		case debVersionCompare(p.version, a.packages[i].version) > 0:
			a.packages[i] = p
		}
		a.dropped++
	}
	slices.SortFunc(a.packages, func(x, y debPackage) int { return strings.Compare(x.name, y.name) })
	return a
}

// debField is the value of a field, folded lines joined by newlines, and the line of the file on
// which it starts.
type debField struct {
	value []byte
	line  int
}

// debCursor reads stanzas ("Name: value" lines up to an empty line) one after the other.
type debCursor struct {
	input
	lines *bufio.Scanner
	line  int
	more  bool
}

func (c *debCursor) fail(line int, format string, args ...any) {
	c.require(false, `the input must be the output of "apt-cache dumpavail"`, "line %d: "+format, append([]any{line}, args...)...)
}

// next returns the wanted fields of the next stanza and the line on which it starts: 0 at the
// end of the input.
func (c *debCursor) next() (fields map[string]debField, start int) {
	fields = map[string]debField{}
	name := "" // of the field being read; "" for an unwanted one
	for c.lines.Scan() {
		c.line++
		line := bytes.TrimRight(c.lines.Bytes(), " \t\r")
		switch {
		case len(line) == 0 && start == 0: // several empty lines are like one
		case len(line) == 0:
			return fields, start
		case line[0] != ' ' && line[0] != '\t':
			start = cmp.Or(start, c.line)
			name = c.field(fields, line)
		case start == 0:
			c.fail(c.line, "%s continues a field, but none is before it", debQuoted(line))
		case name != "":
			f := fields[name]
			f.value = append(append(f.value, '\n'), line...)
			fields[name] = f
		}
	}
	var unreadable *fs.PathError
	switch err := c.lines.Err(); {
	case err == nil:
	case errors.Is(err, bufio.ErrTooLong):
		c.fail(c.line+1, "longer than %d bytes", debLineLimit)
	case errors.As(err, &unreadable):
		c.system(err)
	default:
		c.require(false, "write the file again", "after line %d: %v", c.line, err)
	}
	return fields, start
}

// field starts a new field with line, which is "Name: value". It returns the name in lower case,
// "" for an unwanted field.
func (c *debCursor) field(fields map[string]debField, line []byte) string {
	name, value, ok := bytes.Cut(line, []byte(":"))
	// Debian policy 5.1: printable ASCII without a blank or a colon.
	if !ok || len(name) == 0 || bytes.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		c.fail(c.line, `%s is not a "Field: value" line`, debQuoted(line))
	}
	key := strings.ToLower(string(name))
	if !slices.Contains(debWanted, key) {
		return ""
	}
	if _, twice := fields[key]; twice {
		c.fail(c.line, "field %s occurs twice in a stanza", debQuoted(name))
	}
	fields[key] = debField{bytes.Clone(bytes.TrimLeft(value, " \t")), c.line}
	return key
}

// debQuoted formats a value for an error message: quoted, and shortened if long.
func debQuoted[T string | []byte](v T) string {
	const most = 60
	if len(v) > most {
		return strconv.Quote(string(v[:most])) + "…"
	}
	return strconv.Quote(string(v))
}

// pkg turns the fields of the stanza that starts at line start into a package
// and adds the names that it provides to virtual.
func (c *debCursor) pkg(fields map[string]debField, start int, virtual map[string]bool) debPackage {
	name, ok := fields["package"]
	switch {
	case !ok:
		c.fail(start, "the stanza that starts here has no Package field")
	case !debPackageName(string(name.value)):
		c.fail(name.line, "Package %s is not a package name", debQuoted(name.value))
	}
	section := string(fields["section"].value)
	summary, ok := fields["description"]
	if !ok {
		summary = fields["description-en"] // its name if apt fetches translations
	}
	first, _, _ := bytes.Cut(summary.value, []byte{'\n'})
	p := debPackage{
		name:    string(name.value),
		version: string(fields["version"].value),
		section: section[strings.LastIndexByte(section, '/')+1:], // "non-free/games" is about games
		summary: string(first),
	}
	for i, key := range debRelations {
		p.relations = c.relation(p.relations, 1<<i, key, fields[key])
	}
	for _, v := range c.relation(nil, 0, "provides", fields["provides"]) {
		virtual[v.name] = true
	}
	if c.more {
		for _, key := range debMoreRelations {
			p.more = append(p.more, c.relation(nil, 0, key, fields[key]))
		}
		source, _, _ := strings.Cut(string(fields["source"].value), " ")
		p.source = cmp.Or(source, p.name)
		p.maintainer = debMaintainer(string(fields["maintainer"].value))
	}
	return p
}

// debMaintainer returns the mail address in "Name <address>", or the whole value without one. Names of one
// address differ in spelling.
func debMaintainer(value string) string {
	_, address, _ := strings.Cut(value, "<")
	address, _, closed := strings.Cut(address, ">")
	if !closed {
		address = value
	}
	return strings.ToLower(strings.Join(strings.Fields(address), " "))
}

func (c *debCursor) relation(dst []debRelation, field debProps, key string, f debField) []debRelation {
	list, bad, at := debParseRelations(dst, field, string(f.value))
	if bad != "" {
		line := f.line + bytes.Count(f.value[:at], []byte{'\n'})
		c.fail(line, "%s in field %s is not a package relation", debQuoted(bad), key)
	}
	return list
}
