package importers

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/klauspost/compress/gzip"

	"siafu/graph"
	"siafu/internal/fault"
)

var debianFormat = importer{
	entry: entry{Name: "debian", Help: "package graph of a Debian machine"},
	read:  debian, recognises: isStandardInput, named: []string{"field", "version", "alternative"},
}

// debian imports the package archive of a Debian-like machine from the output of "apt-cache
// dumpavail" (Src is a file, gzipped or not, or "-" for standard input): a real graph that
// every such machine has.
//
// A vertex is a package, numbered by name. A package is the neighbour of every package in its
// Depends, Pre-Depends, Recommends, Suggests and Enhances, all alternatives included and in
// both directions. Names that packages only provide (virtual) and names that the archive lacks
// are counted in the log and are no edges. Edges have the features that o.EdgeFeatures names
// (debEdges). Features are binary and sparse: the wordColumns words found in the most short
// descriptions. The label is the section. Labelled vertices are split at random 60/20/20.
func debian(k *resources, o Options) *graph.Content {
	a := openDebArchive(k.input, o)
	if len(a.packages) == 0 {
		check(fault.New(fault.Missing, a.op, a.path, "it contains no package").
			Then(`run "apt-get update", then "apt-cache dumpavail" again`))
	}
	for _, p := range a.packages {
		a.names.add([]byte(p.name))
	}
	c := &graph.Content{Vertices: int64(len(a.packages)), Features: a.features(), IDs: a.names.ids()}
	c.Labels, c.ClassNames = a.labels()
	c.Classes = len(c.ClassNames)
	if o.Relations {
		c = a.relational(k, o, c)
	} else {
		c.Edges, c.Symmetrise = a.edges(o), len(o.EdgeFeatures) == 0
		c.Split = o.draw(c.Labels, usual)
	}
	c.Source = "debian: " + a.path
	return c
}

// openDebArchive reads the archive from the file or standard input, through gzip if it starts
// with gzip's magic number.
func openDebArchive(at input, o Options) *debArchive {
	in := cmp.Or[io.Reader](o.Stdin, os.Stdin)
	if isStandardInput(o.Src) {
		at.path = "standard input"
	} else {
		f, err := os.Open(o.Src)
		at.system(err)
		defer f.Close()
		in = f
	}
	b := bufio.NewReaderSize(in, 1<<20)
	if magic, _ := b.Peek(2); string(magic) != "\x1f\x8b" {
		return readDebArchive(b, at, o.Relations)
	}
	z, err := gzip.NewReader(b)
	at.require(err == nil, "write the file again", "invalid gzip data: %v", err)
	return readDebArchive(z, at, o.Relations)
}

// labels returns the sections as class numbers, and the sorted sections.
func (a *debArchive) labels() (labels []int32, classes []string) {
	for _, p := range a.packages {
		classes = append(classes, p.section)
	}
	slices.Sort(classes)
	classes = slices.DeleteFunc(slices.Compact(classes), func(section string) bool { return section == "" })
	for _, p := range a.packages {
		label, known := slices.BinarySearch(classes, p.section)
		if !known {
			label = int(graph.Unlabelled)
		}
		labels = append(labels, int32(label))
	}
	return labels, classes
}

// debWords returns the distinct words of a short description, sorted: lower case, split at
// everything but letters and digits.
//
// Design note: there is no list of stop words, and words of one letter stay. "c", "r" and "x"
// distinguish sections. A word in every section gets no weight in training, and a list would
// suit only one language.
func debWords(summary string) []string {
	words := strings.FieldsFunc(strings.ToLower(summary), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	slices.Sort(words)
	return slices.Compact(words)
}

// mostFrequent returns the wordColumns most frequent words of a count, ties in alphabetical order.
func mostFrequent(count map[string]int64) []string {
	words := slices.SortedFunc(maps.Keys(count), func(x, y string) int {
		return cmp.Or(cmp.Compare(count[y], count[x]), strings.Compare(x, y))
	})
	return words[:min(len(words), wordColumns)]
}

// features has a one for each word of the vocabulary in a package's summary.
func (a *debArchive) features() graph.Features {
	count := map[string]int64{}
	for _, p := range a.packages {
		for _, w := range debWords(p.summary) {
			count[w]++
		}
	}
	n, words := len(a.packages), mostFrequent(count)
	if len(words) == 0 {
		return graph.Features{Rows: n}
	}
	e, r := newEncoder(graph.Column{Kind: graph.WordsColumn, Values: words}, 0), newSparseRows(n, len(words))
	for _, p := range a.packages {
		r.next()
		e.words(debWords(p.summary), r)
	}
	r.next()
	return r.Features
}
