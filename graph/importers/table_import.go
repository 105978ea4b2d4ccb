package importers

import (
	"cmp"
	"slices"

	"siafu/graph"
)

type tableImport struct {
	Options
	*importer
	resources        *resources
	nodes            *tableFile
	id, label, split int // columns, -1 for none
	ids              *idIndex
	classes          classList
	targets          *targetColumns // nil: labels are classes
	sets             []uint8        // split values, one per vertex
	times            *times         // of the vertices; nil: no split by time
	profiles         []*profile     // of columns that may become features, else nil
	like             *graph.Schema
	missing          missingTexts
	table            graph.Table
	edges            graph.EdgeImport
	columns          []*encoder
	kind             string         // of the vertices of a relational graph; "": the graph is not relational
	unlabelled       bool           // vertices of this kind have no labels
	derived          []graph.Column // of the kind with --like: those that are not columns of its table, but for the indicator
}

// readTables makes a dataset of a table of vertices, read two or three times, and a table of edges,
// read once. The passes over vertices read ids, labels, split and column profiles; with
// --standardise and --fill mean the moments of numbers; and features.
func (f *importer) readTables(k *resources, o Options) *graph.Content {
	im := &tableImport{Options: o, importer: f, resources: k, ids: newIDIndex()}
	im.findLike()
	related := im.Relation != "" || o.Nodes == "" && o.Edges == "" && hasRelations(o.Src, slices.Concat(csvEndings, parquetEndings))
	if im.like != nil && related != (im.like.Relations != nil) {
		k.refuse("name a dataset or a run of such tables", "only one of the source and --like=%s has relations", im.TableOptions.Like)
	}
	if related {
		return im.readRelated()
	}
	im.nodes = im.openTable(im.Nodes, "nodes")
	im.findColumns()
	im.prepare()
	c := im.labels()
	c.Table, c.Features = &im.table, im.encode()
	im.logColumns()
	c.Edges = im.readEdges()
	c.Normalize, c.Symmetrise, c.EdgeImport = im.Normalize, im.Symmetrise, &im.edges
	return c
}

func (im *tableImport) openTable(named, called string) *tableFile {
	return im.open(must(im.file(im.resources.input, named, called)))
}

// findLike checks the options and finds the schema of --like.
func (im *tableImport) findLike() {
	im.checkTable(im.resources.input)
	name := im.TableOptions.Like
	if name == "" {
		return
	}
	if im.like = im.Schema; im.like == nil {
		im.like = must(graph.ReadMeta(name)).Schema()
	}
	if im.like.Table == nil && !im.like.Relations.FromTables() {
		input{im.resources.op, name}.refuse("name a dataset imported from a table, or a run trained on one, with --like",
			"it was not imported from a table")
	}
	im.applyLike()
}

// prepare makes the passes over the vertices before encode, and chooses labels, split and features.
func (im *tableImport) prepare() {
	im.survey()
	im.settleClasses()
	im.chooseSplit()
	im.chooseColumns()
	im.measure()
}

func (im *tableImport) findColumns() {
	defaults := graph.Table{ID: "id", Label: "label", Split: usualSplit}
	if im.like != nil {
		defaults = *im.like.Table
	}
	t, label := im.nodes, cmp.Or(im.Label, defaults.Label)
	im.id = t.needs(cmp.Or(im.ID, defaults.ID), "--id")
	im.label = -1
	if im.unlabelled {
		label = ""
	} else if im.targets = im.findTargets(label); im.targets == nil {
		im.label = t.column(label)
		if im.Label != "" || im.like == nil {
			t.needs(label, "--label")
		}
	}
	im.findMissing()
	t.blank(im.missing, im.id, im.label)
	im.findSplit(defaults.Split)
	for _, l := range im.lists() {
		for _, name := range l.names {
			t.needs(name, l.flag)
		}
	}
	im.table = graph.Table{Missing: im.missing, ID: t.names[im.id], Label: label}
	if !im.unlabelled {
		im.table.Split = cmp.Or(im.Split, defaults.Split)
	}
	im.profiles = make([]*profile, len(t.names))
	for i, name := range t.names {
		if im.isFeature(i) {
			im.profiles[i] = newProfile(im.asked(name), t.dateFormat(i, ""))
		}
	}
}

// isFeature reports whether a column may become a feature. It records the reason if not.
func (im *tableImport) isFeature(i int) bool {
	name, reason := im.nodes.names[i], ""
	switch {
	case i == im.id || i == im.label || im.targets.has(i) || i == im.split || im.like != nil:
		return false
	case slices.Contains(im.Drop, name):
		reason = "--drop names it"
	case name == "":
		name, reason = im.nodes.called(i), "it has no name"
	case len(im.Features) > 0 && !slices.Contains(im.Features, name):
		reason = "--features does not name it"
	case slices.Contains(im.Features, name) || im.asked(name) != "":
	case im.times != nil && i == im.times.column:
		reason = "the split uses this column; add --dates or --categories to make it a feature"
	case im.split < 0 && name == usualSplit:
		reason = "the flags select another split"
	}
	if reason != "" {
		im.drop(name, reason)
	}
	return reason == ""
}

func (im *tableImport) drop(name, reason string) {
	im.table.Dropped = append(im.table.Dropped, graph.Dropped{Name: name, Why: reason})
}
