package importers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"siafu/graph"
	"siafu/graph/fault"
)

// tableFormat is a kind of file that holds a table.
type tableFormat struct {
	name    string
	endings []string // of the names of its files
	open    func(op, path string) (*tableFile, error)
}

func (f *tableFormat) op() string { return "import " + f.name }

// formats of tables.
var (
	csvFormat     = &tableFormat{"csv", []string{".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst"}, openCSV}
	parquetFormat = &tableFormat{"parquet", []string{".parquet"}, openParquet}
)

// recognises a folder with a table of vertices.
func (f *tableFormat) recognises(src string) bool {
	_, err := f.file(Options{Src: src}, "", "nodes", "")
	return err == nil
}

// tableImport is an import under way.
type tableImport struct {
	Options
	*tableFormat
	keep             *keeper
	nodes            *tableFile
	id, label, split int // columns, -1 for none
	ids              *idIndex
	classes          classList
	targets          *targetColumns // nil: labels are classes
	sets             []uint8        // split values, a vertex each
	profiles         []*profile     // of columns that may become features, else nil
	like             *graph.Schema
	table            graph.Table
	columns          []*encoder
}

// read makes a dataset of a table of vertices, which it reads two or three times,
// and one of edges, which it reads once: ids, labels, split and what each column
// holds; with --standardise and --fill mean the moments of numbers; features.
func (f *tableFormat) read(k *keeper, o Options) (*graph.Content, error) {
	im := &tableImport{Options: o, tableFormat: f, keep: k, ids: newIDIndex()}
	for _, step := range []func() error{im.openNodes, im.survey, im.sayClasses, im.chooseSplit, im.chooseColumns, im.measure} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	c := &graph.Content{
		Source: f.name + " " + nameOf(o.Src), Vertices: int64(im.ids.len()), IDs: im.ids.ids(), Table: &im.table,
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
	im.sayColumns()
	c.Edges, err = im.readEdges()
	return c, err
}

// openNodes finds the columns of the table of vertices.
func (im *tableImport) openNodes() error {
	if err := im.TableOptions.check(im.op(), im.Src); err != nil {
		return err
	}
	defaults := graph.Table{ID: "id", Label: "label", Split: "split"}
	if im.TableOptions.Like != "" {
		if im.like = im.Schema; im.like == nil {
			m, err := graph.ReadMeta(im.TableOptions.Like)
			if err != nil {
				return err
			}
			im.like = m.Schema()
		}
		if im.like.Table == nil {
			return fault.New(fault.Usage, im.op(), im.TableOptions.Like, "it was not imported from a table").Then("name a dataset that was, or a run that was trained on one, with --like")
		}
		defaults = *im.like.Table
	}
	path, err := im.file(im.Options, im.Nodes, "nodes", "--nodes")
	if err != nil {
		return err
	}
	if im.nodes, err = im.open(im.op(), path); err != nil {
		return err
	}
	return im.findColumns(defaults)
}

// findColumns finds ids, labels and the split, and what may be features.
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
	im.split = t.column(cmp.Or(im.Split, defaults.Split))
	if im.split < 0 && im.Split != "" {
		_, err := t.needs(im.Split, "--split")
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
			im.profiles[i] = newProfile(im.asked(name))
		}
	}
	return nil
}

// isFeature tells whether a column may become one, and notes those that do not.
func (im *tableImport) isFeature(i int) bool {
	switch name := im.nodes.names[i]; {
	case i == im.id || i == im.label || im.targets.has(i) || i == im.split || im.like != nil:
		return false
	case name == "":
		im.drop(fmt.Sprintf("column %d", i+1), "it has no name")
		return false
	case len(im.Features) > 0 && !slices.Contains(im.Features, name):
		im.drop(name, "--features does not name it")
		return false
	}
	return true
}

func (im *tableImport) drop(name, why string) {
	im.table.Dropped = append(im.table.Dropped, graph.Dropped{Name: name, Why: why})
}

// survey is the first pass over the vertices.
func (im *tableImport) survey() error {
	err := im.nodes.each(func(at int64, cells [][]byte) error {
		if err := im.addID(at, cells[im.id]); err != nil {
			return err
		}
		if err := im.addLabel(at, cells); err != nil {
			return err
		}
		if err := im.addSet(at, cells); err != nil {
			return err
		}
		for i, p := range im.profiles {
			if p != nil {
				p.add(at, cells[i])
			}
		}
		return nil
	})
	if err == nil && im.ids.len() == 0 {
		err = fault.New(fault.Data, im.op(), im.nodes.path, "there is no row below the heading").Then("write a row for each vertex")
	}
	return err
}

// addLabel reads the label of the vertex of a row.
func (im *tableImport) addLabel(at int64, cells [][]byte) error {
	var label []byte
	switch {
	case im.targets != nil:
		l, err := im.targets.add(im.nodes, at, cells)
		im.classes.labels = append(im.classes.labels, l)
		return err
	case im.label >= 0:
		label = cells[im.label]
	}
	im.classes.add(at, label)
	return nil
}

// addID numbers the vertex of a row.
func (im *tableImport) addID(at int64, id []byte) error {
	switch {
	case len(id) == 0:
		return im.nodes.fault(at, im.id, id, "is no id").Then("give each vertex an id of its own")
	case slices.ContainsFunc(id, func(b byte) bool { return b < ' ' }):
		return im.nodes.fault(at, im.id, id, "holds a character that ends lines or is not to be seen").Then("write ids of one line")
	}
	if v, fresh := im.ids.add(id); !fresh {
		return im.nodes.fault(at, im.id, id, "comes twice: it is the id of row %d, too", v+1).Then("give each vertex one row and an id of its own")
	}
	return nil
}

// addSet reads which set the vertex of a row is in.
func (im *tableImport) addSet(at int64, cells [][]byte) error {
	set := uint8(graph.SplitNone)
	if im.split >= 0 {
		var known bool
		if set, known = setOf(cells[im.split]); !known {
			return im.nodes.fault(at, im.split, cells[im.split], "is no set").Then("write train, val, test or nothing")
		}
		if v := len(im.sets); set != graph.SplitNone && (im.label >= 0 || im.targets != nil) && im.classes.labels[v] == graph.Unlabelled {
			column := im.label
			if im.targets != nil {
				column = im.targets.at[0]
			}
			return im.nodes.fault(at, column, nil, "is the label of a vertex in the %s set", splitNames[set]).
				Then("leave the split of vertices without a label empty")
		}
	}
	im.sets = append(im.sets, set)
	return nil
}

// setOf is the split value that a cell names.
func setOf(cell []byte) (set uint8, known bool) {
	switch strings.ToLower(string(cell)) {
	case "", "none":
		return graph.SplitNone, true
	case "train", "training":
		return graph.SplitTrain, true
	case "val", "valid", "validation", "dev":
		return graph.SplitVal, true
	case "test", "testing":
		return graph.SplitTest, true
	}
	return 0, false
}

// sayClasses numbers the classes and says which they are.
func (im *tableImport) sayClasses() error {
	if im.targets != nil {
		return nil
	}
	if im.like != nil {
		return im.classes.fit(im.nodes, im.label, im.like)
	}
	if err := im.classes.settle(im.nodes, im.label); err != nil {
		return err
	}
	const most = 20
	names := strings.Join(im.classes.names[:min(most, len(im.classes.names))], ", ")
	im.Log("label=%s classes=%d: %s", im.table.Label, len(im.classes.names), names)
	return nil
}

// chooseSplit draws a split where the table has none.
func (im *tableImport) chooseSplit() error {
	if im.split >= 0 || im.like != nil {
		return nil
	}
	im.sets = drawPercent(im.classes.labels, 60, 20, im.Seed)
	im.table.Split = fmt.Sprintf("drawn with seed %d: 60 %% train, 20 %% val, 20 %% test", im.Seed)
	im.Log("split=drawn train=60%% val=20%% test=20%% seed=%d", im.Seed)
	return nil
}

// chooseColumns decides what each column becomes.
func (im *tableImport) chooseColumns() error {
	if im.like != nil {
		im.table.Columns = slices.Clone(im.like.Table.Columns)
		for _, c := range im.table.Columns {
			at, err := im.nodes.needs(c.Name, "the name that it has in "+im.TableOptions.Like)
			if err != nil {
				return err
			}
			im.columns = append(im.columns, newEncoder(c, at))
		}
		return nil
	}
	for i, p := range im.profiles {
		if p == nil {
			continue
		}
		if err := im.chooseColumn(i, p); err != nil {
			return err
		}
	}
	if len(im.columns) == 0 {
		return fault.New(fault.Data, im.op(), im.nodes.path, "no column becomes a feature").
			Then("give the vertices a column of numbers or of few values")
	}
	return nil
}

// chooseColumn decides what a column becomes by its profile.
func (im *tableImport) chooseColumn(i int, p *profile) error {
	name := im.nodes.names[i]
	kind, why, err := p.kind(im.nodes, i, im.asked(name))
	switch {
	case err != nil:
		return err
	case kind == "" && slices.Contains(im.Features, name):
		return fault.New(fault.Data, im.op(), im.nodes.path, "column %d (%s) cannot be a feature: %s", i+1, name, why).
			Then("leave it out of --features, or choose one of these")
	case kind == "":
		im.drop(name, why)
		return nil
	}
	c := graph.Column{Name: name, Kind: kind, Width: 1, Values: p.names(kind, wordColumns)}
	if len(im.columns) > 0 {
		last := im.columns[len(im.columns)-1]
		c.First = last.First + last.Width
	}
	switch kind {
	case graph.NumberColumn:
		c.Scale = 1
	case graph.HashColumn:
		c.Width = hashedColumns
	default:
		c.Width = len(c.Values)
	}
	if im.Fill != "" && kind != graph.WordsColumn {
		c.Fill = new(float64)
	}
	if c.Width == 0 {
		im.drop(name, "it holds no word")
		return nil
	}
	im.columns = append(im.columns, newEncoder(c, i))
	return nil
}

// measure gives numbers the mean and the scale of training rows.
func (im *tableImport) measure() error {
	if im.Standardise || im.Fill == "mean" {
		if err := im.moments(); err != nil {
			return err
		}
	}
	if im.like == nil {
		for _, e := range im.columns {
			im.table.Columns = append(im.table.Columns, e.Column)
		}
	}
	return nil
}

// again is another pass over the vertices, by their numbers.
func (im *tableImport) again(yield func(v int, at int64, cells [][]byte) error) error {
	v, n := 0, im.ids.len()
	err := im.nodes.each(func(at int64, cells [][]byte) error {
		if v++; v > n {
			return nil
		}
		return yield(v-1, at, cells)
	})
	if err == nil && v != n {
		err = fault.New(fault.IO, im.op(), im.nodes.path, "it had %d rows, and then %d", n, v).Then("import it when nobody writes to it")
	}
	return err
}

// moments is the pass over the vertices that finds mean and scale.
func (im *tableImport) moments() error {
	err := im.again(func(v int, _ int64, cells [][]byte) error {
		for _, e := range im.columns {
			if x, ok := number(cells[e.at]); ok && e.Kind == graph.NumberColumn && im.sets[v] == graph.SplitTrain {
				e.counting.add(x)
			}
		}
		return nil
	})
	for _, e := range im.columns {
		if e.Kind != graph.NumberColumn {
			continue
		}
		e.settle(im.Options)
	}
	return err
}

// encode is the pass over the vertices that makes features.
func (im *tableImport) encode() (graph.Features, error) {
	r, err := newFeatureRows(im.keep, im.nodes, im.columns, im.ids.len())
	if err != nil {
		return graph.Features{}, err
	}
	err = im.again(func(_ int, at int64, cells [][]byte) error {
		r.next()
		for _, e := range im.columns {
			if err := e.encode(im.nodes, at, cells[e.at], r); err != nil {
				return err
			}
		}
		return nil
	})
	r.next()
	return r.Features, err
}
