package importers

import (
	"io"
	"slices"
	"strings"
)

// debPackage is the data that the importer uses of a stanza.
type debPackage struct {
	name, version string
	section       string        // without the archive area, "" where unknown
	summary       string        // the short description
	relations     []debRelation // packages in the relation fields, with repetitions
}

// debArchive is a whole archive.
type debArchive struct {
	packages []debPackage    // by name, each name once
	virtual  map[string]bool // names that some package provides
	dropped  int             // stanzas superseded by another version
}

// readDebArchive reads every stanza of r; path is for messages. Of several versions of a
// package it uses the highest, and the first of equal ones (multi-arch machines list the same
// version once per architecture).
//
// Design note: packages are sorted by name, not in the order of the file, so that the dataset
// does not depend on the order of apt's lists.
func readDebArchive(r io.Reader, path string) (*debArchive, error) {
	a := &debArchive{virtual: map[string]bool{}}
	index := map[string]int{}
	c := newDebCursor(r, path)
	fields := map[string]debField{}
	for {
		start, ok := c.next(fields)
		if !ok {
			break
		}
		p := c.pkg(fields, start, a.virtual)
		i, known := index[p.name]
		switch {
		case !known:
			index[p.name] = len(a.packages)
			a.packages = append(a.packages, p)
		case debVersionCompare(p.version, a.packages[i].version) > 0:
			a.packages[i] = p
			a.dropped++
		default:
			a.dropped++
		}
	}
	slices.SortFunc(a.packages, func(x, y debPackage) int { return strings.Compare(x.name, y.name) })
	return a, c.err
}

// pkg turns the fields of the stanza that starts at line start into a package
// and adds the names that it provides to virtual.
func (c *debCursor) pkg(fields map[string]debField, start int, virtual map[string]bool) debPackage {
	name, ok := fields["package"]
	switch {
	case !ok:
		c.fail(start, "the stanza that starts here has no Package field")
	case !debPackageName(name.value):
		c.fail(name.line, "Package %s is not a package name", debQuoted(name.value))
	}
	p := debPackage{
		name:    name.value,
		version: fields["version"].value,
		section: debSection(fields["section"].value),
		summary: debSummary(fields),
	}
	for i, key := range debRelations {
		p.relations = c.relation(p.relations, 1<<i, key, fields[key])
	}
	for _, v := range c.relation(nil, 0, "provides", fields["provides"]) {
		virtual[v.name] = true
	}
	return p
}

// relation appends the packages in a relation field to dst.
func (c *debCursor) relation(dst []debRelation, field debSays, key string, f debField) []debRelation {
	list, bad, at := debParseRelations(dst, field, f.value)
	if bad != "" {
		line := f.line + strings.Count(f.value[:at], "\n")
		c.fail(line, "%s in field %s is not a package relation", debQuoted(bad), key)
	}
	return list
}

// debSection drops the archive area: "non-free/games" is about games.
func debSection(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

// debSummary returns the short description: the first line of the description.
func debSummary(fields map[string]debField) string {
	f, ok := fields["description"]
	if !ok {
		f = fields["description-en"] // its name if apt fetches translations
	}
	line, _, _ := strings.Cut(f.value, "\n")
	return line
}
