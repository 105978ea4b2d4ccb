package importers

import (
	"cmp"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
)

// tableFormat is a file format of tables. A new one is a tableFormat in a file of its own and a
// line in tableFormats.
type tableFormat struct {
	entry
	endings []string // of the names of its files
	open    func(op, path string) (*tableFile, error)
}

func (f *tableFormat) op() string { return "import " + f.entry.Name }

// tableFormats lists the formats of tables.
var tableFormats = []*tableFormat{
	csvFormat,
	parquetFormat,
}

// tableImport is a running import.
type tableImport struct {
	Options
	*tableFormat
	keep             *keeper
	nodes            *tableFile
	id, label, split int // columns, -1 for none
	ids              *idIndex
	classes          classList
	targets          *targetColumns // nil: labels are classes
	sets             []uint8        // split values, one per vertex
	times            *times         // of the vertices; nil: no split by time
	profiles         []*profile     // of columns that may become features, else nil
	like             *graph.Schema
	table            graph.Table
	edges            graph.EdgeImport
	columns          []*encoder
}

// read makes a dataset of a table of vertices, read two or three times, and a table of edges,
// read once. The passes over vertices read ids, labels, split and column profiles; with
// --standardise and --fill mean the moments of numbers; and features.
func (f *tableFormat) read(k *keeper, o Options) (*graph.Content, error) {
	im := &tableImport{Options: o, tableFormat: f, keep: k, ids: newIDIndex()}
	for _, step := range []func() error{im.openNodes, im.survey, im.sayClasses, im.chooseSplit, im.chooseColumns, im.measure} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c := &graph.Content{
		Source: f.entry.Name + " " + nameOf(o.Src), Vertices: int64(im.ids.len()), IDs: im.ids.ids(), Table: &im.table,
		Labels: im.classes.labels, Split: im.sets, Classes: len(im.classes.names), ClassNames: im.classes.classNames(),
	}
	var err error
	if im.targets != nil {
		if err := im.settleTargets(c); err != nil {
			return nil, err
		}
	}
	if c.Features, err = im.encode(); err != nil {
		return nil, err
	}
	im.recordMissing()
	im.sayColumns()
	c.Edges, err = im.readEdges()
	c.Normalize, c.Symmetrise, c.EdgeImport = im.Normalize, im.Symmetrise, &im.edges
	return c, err
}

// openNodes finds the columns of the table of vertices.
func (im *tableImport) openNodes() error {
	if err := im.Options.checkTable(im.op()); err != nil {
		return err
	}
	defaults := graph.Table{ID: "id", Label: "label", Split: usualSplit}
	if im.TableOptions.Like != "" {
		if im.like = im.Schema; im.like == nil {
			m, err := graph.ReadMeta(im.TableOptions.Like)
			if err != nil {
				return err
			}
			im.like = m.Schema()
		}
		if im.like.Table == nil {
			return fault.New(fault.Usage, im.op(), im.TableOptions.Like, "it was not imported from a table").Then("name a dataset imported from a table, or a run trained on one, with --like")
		}
		defaults = *im.like.Table
		if err := im.takeOver(); err != nil {
			return err
		}
	}
	path, err := im.file(im.Options, im.Nodes, "nodes")
	if err != nil {
		return err
	}
	if im.nodes, err = im.open(im.op(), path); err != nil {
		return err
	}
	return im.findColumns(defaults)
}

// findColumns finds ids, labels, the split and possible features.
func (im *tableImport) findColumns(defaults graph.Table) (err error) {
	t := im.nodes
	if im.id, err = t.needs(cmp.Or(im.ID, defaults.ID), "--id"); err != nil {
		return err
	}
	if im.targets, err = im.findTargets(cmp.Or(im.Label, defaults.Label)); err != nil {
		return err
	}
	im.label = -1
	if im.targets == nil {
		im.label = t.column(cmp.Or(im.Label, defaults.Label))
	}
	if im.label < 0 && im.targets == nil && (im.Label != "" || im.like == nil) {
		_, err := t.needs(cmp.Or(im.Label, defaults.Label), "--label")
		return err
	}
	if err := im.findSplit(defaults.Split); err != nil {
		return err
	}
	for _, l := range im.lists() {
		for _, name := range l.names {
			if _, err := t.needs(name, l.flag); err != nil {
				return err
			}
		}
	}
	im.table = graph.Table{ID: t.names[im.id], Label: cmp.Or(im.Label, defaults.Label), Split: cmp.Or(im.Split, defaults.Split)}
	im.profiles = make([]*profile, len(t.names))
	for i, name := range t.names {
		if im.isFeature(i) {
			im.profiles[i] = newProfile(im.asked(name), t.dateFormat(i, ""))
		}
	}
	return nil
}

// isFeature reports whether a column may become a feature, and records those that do not.
func (im *tableImport) isFeature(i int) bool {
	switch name := im.nodes.names[i]; {
	case i == im.id || i == im.label || im.targets.has(i) || i == im.split || im.like != nil:
		return false
	case name == "":
		im.drop(im.nodes.called(i), "it has no name")
		return false
	case len(im.Features) > 0 && !slices.Contains(im.Features, name):
		im.drop(name, "--features does not name it")
		return false
	case slices.Contains(im.Features, name) || im.asked(name) != "":
	case im.times != nil && i == im.times.column:
		im.drop(name, "the split uses this column; add --dates or --categories to make it a feature")
		return false
	case im.split < 0 && name == usualSplit:
		im.drop(name, "the flags select another split")
		return false
	}
	return true
}

func (im *tableImport) drop(name, why string) {
	im.table.Dropped = append(im.table.Dropped, graph.Dropped{Name: name, Why: why})
}
