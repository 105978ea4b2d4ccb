package importers

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"siafu/graph"
)

// Folders of the tables of a relational graph: nodes/KIND.csv and edges/FROM__RELATION__TO.csv.
const (
	kindFolder     = "nodes"
	relationFolder = "edges"
	nameSeparator  = "__"
)

// oneKind is the name of the vertices of a graph with a column of relations.
const oneKind = "vertex"

// relatedImport imports a relational graph: tables of kinds of vertices, and of relations between them.
type relatedImport struct {
	*tableImport // the options for all tables
	relational
	imports []*tableImport // of the kinds; nodes is nil for a kind without a table: its ids are those in edges
	files   []input        // tables of the relations, in their order
}

// hasRelations recognises a folder of relations by a table with one of the endings.
func hasRelations(src string, endings []string) bool {
	files, _ := os.ReadDir(filepath.Join(src, relationFolder))
	return slices.ContainsFunc(files, func(f os.DirEntry) bool {
		return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(f.Name(), e) })
	})
}

// readRelated makes a relational dataset.
func (im *tableImport) readRelated() *graph.Content {
	r := &relatedImport{tableImport: im, relational: relational{fromTables: true}}
	if r.like != nil {
		r.schema = r.like.Relations
	}
	refuseRelational(r.resources.input, r.Options)
	if im.Relation != "" {
		r.addKind(oneKind, im.Nodes)
	} else {
		r.findTables()
	}
	r.openKinds()
	for _, k := range r.tables() {
		k.prepare()
	}
	r.readRelations()
	r.addReverse(r.Options)
	for i, k := range r.imports {
		r.of.Kinds[i].Vertices, r.of.Kinds[i].Table = int64(k.ids.len()), &k.table
		r.kinds = append(r.kinds, k.labels())
	}
	r.makeFeatures()
	c := r.content(r.resources, r.Options)
	c.EdgeImport = &r.edges
	return c
}

// labels returns the vertices without their features.
func (im *tableImport) labels() *graph.Content {
	c := &graph.Content{Vertices: int64(im.ids.len()), IDs: im.ids.ids()}
	if !im.unlabelled {
		c.Labels, c.Split, c.Classes, c.ClassNames = im.classes.labels, im.sets, len(im.classes.names), im.classes.classNames()
		im.settleTargets(c)
	}
	return c
}

// tables returns the kinds that have a table.
func (r *relatedImport) tables() []*tableImport {
	return slices.DeleteFunc(slices.Clone(r.imports), func(k *tableImport) bool { return k.nodes == nil })
}

// addKind adds a kind whose table is the named file in SRC.
func (r *relatedImport) addKind(name, file string) {
	k := *r.tableImport
	k.kind, k.Nodes, k.ids = name, file, newIDIndex()
	if r.Relation == "" {
		log := k.Log
		k.Log = func(format string, args ...any) {
			text, isWarning := strings.CutPrefix(format, "warning: ")
			if format = "kind=%s " + text; isWarning {
				format = "warning: " + format
			}
			log(format, append([]any{name}, args...)...)
		}
	}
	r.imports = append(r.imports, &k)
	r.of.Kinds = append(r.of.Kinds, graph.VertexKind{Name: name})
}

// listTables returns the tables of a folder in SRC, by their names without endings.
func (r *relatedImport) listTables(folder string) map[string]input {
	at, tables := r.resources.in(folder), map[string]input{}
	files, _ := os.ReadDir(at.path) // without a folder, there are no tables
	for _, f := range files {
		if tableFormatOf(f.Name()) == nil {
			check(unreadTable(at, strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))))
			continue
		}
		name := tableName(f.Name())
		checkKindName(at, name)
		if before, twice := tables[name]; twice {
			at.refuse("remove one of them", "%s and %s are tables of the same name", filepath.Base(before.path), f.Name())
		}
		tables[name] = at.in(f.Name())
	}
	return tables
}

// findTables finds kinds and relations by the names of files, in the order of the names.
func (r *relatedImport) findTables() {
	var tables []string
	kinds, relations := r.listTables(kindFolder), r.listTables(relationFolder)
	r.resources.require(len(kinds) > 0, "write a table nodes/KIND.csv with a column of labels", "there is no table in the folder nodes")
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		tables = append(tables, kindFolder+"/"+name)
		r.addKind(name, filepath.Join(kindFolder, filepath.Base(kinds[name].path)))
	}
	for _, name := range slices.Sorted(maps.Keys(relations)) {
		tables = append(tables, relationFolder+"/"+name)
		parts := strings.Split(name, nameSeparator)
		if len(parts) != 3 || slices.Contains(parts, "") {
			relations[name].refuse("name it FROM__RELATION__TO, such as author__writes__paper", "%q is not the name of a relation", name)
		}
		for _, kind := range []string{parts[0], parts[2]} {
			if r.of.Kind(kind) < 0 {
				r.addKind(kind, "")
			}
		}
		r.files = append(r.files, relations[name])
		r.addRelation(relations[name], parts[0], parts[1], parts[2], newEdgeBuffer(r.resources, relations[name]))
	}
	if r.like != nil {
		r.sameTables(tables)
	}
}

// sameTables requires the tables of --like. Their names determine the order of kinds and relations.
func (r *relatedImport) sameTables(have []string) {
	var want []string
	like := r.like.Relations
	for _, k := range like.Kinds {
		if k.Table.ID != "" {
			want = append(want, kindFolder+"/"+k.Name)
		}
	}
	for _, x := range like.Relations {
		if !x.Reverse {
			name := strings.Join([]string{like.Kinds[x.From].Name, x.Name, like.Kinds[x.To].Name}, nameSeparator)
			want = append(want, relationFolder+"/"+name)
		}
	}
	sameName := func(a, b graph.VertexKind) bool { return a.Name == b.Name }
	if !slices.Equal(have, want) || !slices.EqualFunc(r.of.Kinds, like.Kinds, sameName) {
		r.resources.refuse("write the same tables; a relation without edges is a table with only a heading",
			"its tables are %s, those of --like=%s are %s", strings.Join(have, ", "), r.TableOptions.Like, strings.Join(want, ", "))
	}
}

// openKinds opens the tables of vertices and finds their columns.
func (r *relatedImport) openKinds() {
	for _, k := range r.imports {
		if k.unlabelled = true; k.Nodes != "" || r.Relation != "" {
			if f := tableFormatOf(k.Nodes); f != nil {
				k.importer = f
			}
			k.nodes = k.openTable(k.Nodes, kindFolder)
		}
	}
	r.assignColumns()
	for i, k := range r.imports {
		if r.like != nil {
			k.useLike(r.like, i)
		}
		if k.nodes != nil {
			k.chooseLabel(&r.Options)
			k.findColumns()
		}
	}
	if !slices.ContainsFunc(r.imports, func(k *tableImport) bool { return !k.unlabelled }) && r.like == nil {
		r.resources.refuse("name the column with --label KIND.COLUMN", "no table of vertices has a column label")
	}
}

// useLike gives a kind the schema of --like with its own columns.
func (im *tableImport) useLike(like *graph.Schema, kind int) {
	own, t := *like, *like.Relations.Kinds[kind].Table
	columns := t.Columns[:len(t.Columns)-1] // without the indicator
	im.derived = slices.DeleteFunc(slices.Clone(columns), func(c graph.Column) bool { return !isDerived(&t, c) })
	t.Columns = slices.DeleteFunc(slices.Clone(columns), func(c graph.Column) bool { return isDerived(&t, c) })
	own.Table, im.like = &t, &own
}

// isDerived reports whether a column's features are not those of a feature column of the table.
func isDerived(t *graph.Table, c graph.Column) bool {
	return c.Kind == graph.MeanColumn || t.ID == "" || c.Name == t.ID
}

// chooseLabel decides whether vertices of the kind have labels, and sets the defaults of its id and split.
// all are the options for all kinds.
func (im *tableImport) chooseLabel(all *Options) {
	switch {
	case all.Label != "":
		im.unlabelled = im.Label == ""
	case im.like != nil:
		im.unlabelled = im.like.Table.Label == ""
	default:
		im.unlabelled = im.Relation == "" && im.nodes.column("label") < 0
	}
	if im.unlabelled {
		im.Split, im.SplitByTime = "", ""
	} else {
		im.Split, im.SplitByTime = cmp.Or(im.Split, all.Split), cmp.Or(im.SplitByTime, all.SplitByTime)
	}
	if im.ID == "" && im.like == nil && im.nodes.column("id") < 0 {
		im.ID = im.nodes.names[0]
	}
}

// assignColumns gives each kind the columns that flags name as COLUMN or KIND.COLUMN.
func (r *relatedImport) assignColumns() {
	used := map[string]bool{}
	for _, k := range r.tables() {
		own := func(names []string) (list []string) {
			for _, name := range names {
				column, prefixed := strings.CutPrefix(name, k.kind+".")
				if k.nodes.column(name) >= 0 {
					column = name
				} else if !prefixed {
					continue
				}
				list, used[name] = append(list, column), true
			}
			return list
		}
		for _, list := range []*[]string{&k.Features, &k.Drop, &k.Categories, &k.Hash, &k.Words, &k.Dates} {
			*list = own(*list)
		}
		for _, text := range []*string{&k.ID, &k.Label, &k.Split, &k.SplitByTime} {
			*text = strings.Join(own(strings.Split(*text, ",")), ",")
		}
	}
	lists := r.TableOptions.lists()
	for flag, text := range map[string]string{"--id": r.ID, "--label": r.Label, "--split": r.Split, "--split-by-time": r.SplitByTime} {
		if text != "" {
			lists = append(lists, columnList{flag: flag, names: strings.Split(text, ",")})
		}
	}
	for _, l := range lists {
		for _, name := range l.names {
			if !used[name] {
				r.resources.refuse("write COLUMN or KIND.COLUMN", "%s names %q, which is not a column of a vertex table", l.flag, name)
			}
		}
	}
}
