package importers

import (
	"cmp"
	"maps"
	"math"
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
	*tableImport                // the options for all tables
	kinds        []*tableImport // nodes is nil for a kind without a table: its ids are those in edges
	of           graph.Relations
	files        []input      // tables of the relations, in their order
	lists        []edgeBuffer // edges of the relations without reverse ones: numbers within kinds
}

// hasRelations recognises a folder of relations by a table with one of the endings.
func hasRelations(src string, endings []string) bool {
	files, _ := os.ReadDir(filepath.Join(src, relationFolder))
	return slices.ContainsFunc(files, func(f os.DirEntry) bool {
		return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(f.Name(), e) })
	})
}

// refuseRelational refuses the flags of relational graphs for a graph without relations.
func (im *tableImport) refuseRelational() {
	const remedy = "import tables in the folders nodes and edges, or name a column of relations with --relation"
	if isSet(im.Featureless) {
		im.resources.refuse(remedy, "--featureless=%s, but the graph has no relations", im.Featureless)
	}
	if im.like != nil && im.like.Relations != nil {
		im.resources.refuse(remedy, "--like=%s has relations, but the source has none", im.TableOptions.Like)
	}
}

// readRelated makes a relational dataset.
func (im *tableImport) readRelated() *graph.Content {
	r := &relatedImport{tableImport: im}
	r.checkFlags()
	switch {
	case im.Relation != "":
		r.addKind(oneKind, im.Nodes)
	default:
		r.findTables()
	}
	r.openKinds()
	for _, k := range r.tables() {
		k.survey()
		k.settleClasses()
	}
	r.mergeClasses()
	for _, k := range r.tables() {
		k.chooseSplit()
		k.chooseColumns()
		k.measure()
	}
	r.readRelations()
	r.addReverse()
	c := r.content()
	c.Features = r.features()
	for i, k := range r.kinds {
		r.of.Kinds[i].Table = &k.table
	}
	return c
}

func (r *relatedImport) checkFlags() {
	if r.like != nil && r.like.Relations == nil {
		r.resources.refuse("name a relational dataset, or a run trained on one, with --like", "--like=%s has no relations",
			r.TableOptions.Like)
	}
	if r.Symmetrise {
		r.resources.refuse("use --reverse-relations on", "--symmetrise, but the edges have relations")
	}
	if r.Weight != "" || len(r.EdgeFeatures) > 0 {
		r.resources.refuse("leave --weight and --edge-features out, or make a relation of each kind of edge",
			"relations have no weights and no edge features")
	}
}

// tables returns the kinds that have a table.
func (r *relatedImport) tables() []*tableImport {
	return slices.DeleteFunc(slices.Clone(r.kinds), func(k *tableImport) bool { return k.nodes == nil })
}

// addKind adds a kind whose table is the named file in SRC.
func (r *relatedImport) addKind(name, file string) *tableImport {
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
	r.kinds = append(r.kinds, &k)
	r.of.Kinds = append(r.of.Kinds, graph.VertexKind{Name: name})
	return &k
}

// kindOf returns the index of a kind, -1 if it is unknown.
func (r *relatedImport) kindOf(name string) int {
	return slices.IndexFunc(r.kinds, func(k *tableImport) bool { return k.kind == name })
}

// listTables returns the tables of a folder in SRC, by their names without endings.
func (r *relatedImport) listTables(folder string) map[string]input {
	at := r.resources.in(folder)
	tables := map[string]input{}
	files, _ := os.ReadDir(at.path) // without a folder, there are no tables
	for _, f := range files {
		if tableFormatOf(f.Name()) == nil {
			check(unreadTable(at, strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))))
			r.Log("warning: %s is not used: it is not a table", filepath.Join(folder, f.Name()))
			continue
		}
		name := tableName(f.Name())
		if before, twice := tables[name]; twice {
			at.refuse("remove one of them", "%s and %s are tables of the same name", filepath.Base(before.path), f.Name())
		}
		tables[name] = at.in(f.Name())
	}
	return tables
}

// findTables finds kinds and relations by the names of files, in the order of names or of --like.
func (r *relatedImport) findTables() {
	kinds, relations := r.listTables(kindFolder), r.listTables(relationFolder)
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		r.addKind(name, filepath.Join(kindFolder, filepath.Base(kinds[name].path)))
	}
	for _, name := range slices.Sorted(maps.Keys(relations)) {
		parts := strings.Split(name, nameSeparator)
		if len(parts) != 3 || slices.Contains(parts, "") {
			relations[name].refuse("name it FROM__RELATION__TO, such as author__writes__paper", "%q is not the name of a relation", name)
		}
		var ends [2]int
		for i, kind := range []string{parts[0], parts[2]} {
			if ends[i] = r.kindOf(kind); ends[i] < 0 {
				r.addKind(kind, "")
				ends[i] = len(r.kinds) - 1
			}
		}
		r.of.Relations = append(r.of.Relations, graph.Relation{Name: parts[1], From: ends[0], To: ends[1], Inverse: -1})
		r.files = append(r.files, relations[name])
	}
	if r.like != nil {
		r.orderLike()
	}
}

// orderLike puts kinds and relations into the order of --like, and requires the same ones.
func (r *relatedImport) orderLike() {
	like, here, files := r.like.Relations, r.of, map[string]input{}
	for i := range here.Relations {
		files[here.Label(i)] = r.files[i]
	}
	r.of, r.files = graph.Relations{Kinds: slices.Clone(like.Kinds), Relations: slices.Clone(like.Relations)}, nil
	for i, x := range like.Relations {
		if x.Reverse {
			continue
		}
		label, name := like.Label(i), strings.Join([]string{like.Kinds[x.From].Name, x.Name, like.Kinds[x.To].Name}, nameSeparator)
		at, found := files[label]
		if !found {
			r.resources.refuse("write the table; if there are no such edges, write only its heading",
				"the folder %s has no table %s, which --like=%s has", relationFolder, name, r.TableOptions.Like)
		}
		r.files = append(r.files, at)
		delete(files, label)
	}
	for label, at := range files {
		at.refuse("remove the table, or train again with it", "the relation %s is not one of --like=%s", label, r.TableOptions.Like)
	}
	found := r.kinds
	r.kinds = nil
	for _, k := range like.Kinds {
		i := slices.IndexFunc(found, func(f *tableImport) bool { return f.kind == k.Name })
		if i < 0 || (found[i].Nodes == "") != (k.Table.ID == "") {
			r.resources.refuse("write a table for each kind that had one in the training data, and no others",
				"kind %s has a table here or in --like=%s, but not in both", k.Name, r.TableOptions.Like)
		}
		r.kinds = append(r.kinds, found[i])
		found = slices.Delete(found, i, i+1)
	}
	if len(found) > 0 {
		r.resources.refuse("remove its table", "kind %s is not one of --like=%s", found[0].kind, r.TableOptions.Like)
	}
}

// openKinds opens the tables of vertices and finds their columns.
func (r *relatedImport) openKinds() {
	for _, k := range r.kinds {
		if k.unlabelled = true; k.Nodes != "" || r.Relation != "" {
			if f := tableFormatOf(k.Nodes); f != nil {
				k.importer = f
			}
			k.nodes = k.openTable(k.Nodes, kindFolder)
		}
	}
	r.assignColumns()
	for i, k := range r.kinds {
		if r.like != nil {
			k.useLike(r.like, i)
		}
		if k.nodes != nil {
			k.chooseLabel(&r.Options)
			k.findColumns()
		}
	}
	if !slices.ContainsFunc(r.kinds, func(k *tableImport) bool { return !k.unlabelled }) && r.like == nil {
		r.resources.refuse("name the column with --label KIND.COLUMN", "no table of vertices has a column label")
	}
}

// useLike gives a kind the schema of --like with its own columns.
func (im *tableImport) useLike(like *graph.Schema, kind int) {
	own, t := *like, *like.Relations.Kinds[kind].Table
	im.derived = slices.DeleteFunc(slices.Clone(t.Columns), func(c graph.Column) bool { return !isDerived(&t, c) })
	t.Columns = slices.DeleteFunc(slices.Clone(t.Columns), func(c graph.Column) bool { return isDerived(&t, c) })
	own.Table, im.like = &t, &own
}

// isDerived reports whether a column's features are not those of a feature column of the table.
func isDerived(t *graph.Table, c graph.Column) bool {
	return c.Kind == graph.IndicatorColumn || c.Kind == graph.MeanColumn || t.ID == "" || c.Name == t.ID
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
	for flag, of := range map[string]func(o *TableOptions) *[]string{
		"--features": func(o *TableOptions) *[]string { return &o.Features }, "--drop": func(o *TableOptions) *[]string { return &o.Drop },
		"--categories": func(o *TableOptions) *[]string { return &o.Categories }, "--hash": func(o *TableOptions) *[]string { return &o.Hash },
		"--words": func(o *TableOptions) *[]string { return &o.Words }, "--dates": func(o *TableOptions) *[]string { return &o.Dates },
	} {
		r.assign(flag, *of(&r.TableOptions), func(k *tableImport, own []string) { *of(&k.TableOptions) = own })
	}
	for flag, of := range map[string]func(o *Options) *string{
		"--id": func(o *Options) *string { return &o.ID }, "--label": func(o *Options) *string { return &o.Label },
		"--split": func(o *Options) *string { return &o.Split }, "--split-by-time": func(o *Options) *string { return &o.SplitByTime },
	} {
		var names []string
		if text := *of(&r.Options); text != "" {
			names = strings.Split(text, ",")
		}
		r.assign(flag, names, func(k *tableImport, own []string) { *of(&k.Options) = strings.Join(own, ",") })
	}
}

func (r *relatedImport) assign(flag string, names []string, give func(k *tableImport, own []string)) {
	used := map[string]bool{}
	for _, k := range r.tables() {
		var own []string
		for _, name := range names {
			column, prefixed := strings.CutPrefix(name, k.kind+".")
			if isColumn := k.nodes.column(name) >= 0; isColumn || prefixed {
				if isColumn {
					column = name
				}
				own, used[name] = append(own, column), true
			}
		}
		give(k, own)
	}
	for _, name := range names {
		if !used[name] {
			r.resources.refuse("write COLUMN or KIND.COLUMN", "%s names %q, which is not a column of a vertex table", flag, name)
		}
	}
}

// mergeClasses gives all labelled kinds the classes of the kind with most of them.
func (r *relatedImport) mergeClasses() {
	labelled := slices.DeleteFunc(r.tables(), func(k *tableImport) bool { return k.unlabelled })
	const remedy = "label one kind only, with --label KIND.COLUMN"
	var most *tableImport
	for _, k := range labelled {
		if k.targets != nil && len(labelled) > 1 {
			r.resources.refuse(remedy, "the kinds %s and %s have labels, and not all of them are classes", labelled[0].kind, labelled[1].kind)
		}
		if most == nil || len(k.classes.names) > len(most.classes.names) {
			most = k
		}
	}
	for _, k := range labelled {
		class := make([]int32, len(k.classes.names))
		for c, name := range k.classes.names {
			class[c] = int32(slices.Index(most.classes.names, name))
			if class[c] < 0 {
				r.resources.refuse(remedy+", or use the same classes", "class %q of kind %s is not a class of kind %s", name, k.kind, most.kind)
			}
		}
		for v, l := range k.classes.labels {
			if l >= 0 && k.targets == nil {
				k.classes.labels[v] = class[l]
			}
		}
		k.classes.names = most.classes.names
	}
}

// content returns the dataset without its features.
func (r *relatedImport) content() *graph.Content {
	c := &graph.Content{Source: r.entry.Name + " " + nameOf(r.Src), Relations: &r.of, Normalize: r.Normalize, EdgeImport: &r.edges}
	c.Edges = relatedEdges{&r.of, r.lists}
	all := &idIndex{offsets: []int64{0}}
	var target *tableImport
	for i, k := range r.kinds {
		n := int64(k.ids.len())
		r.of.Kinds[i].Vertices = n
		for v := range uint32(n) {
			all.text = append(all.text, k.ids.at(v)...)
			all.offsets = append(all.offsets, int64(len(all.text)))
		}
		if k.nodes == nil {
			k.classes.labels, k.sets = unlabelled(n), make([]uint8, n)
		}
		c.Labels, c.Split = append(c.Labels, k.classes.labels...), append(c.Split, k.sets...)
		if c.Vertices += n; !k.unlabelled {
			target, c.Classes, c.ClassNames = k, len(k.classes.names), k.classes.classNames()
		}
	}
	c.IDs = all.ids()
	if target != nil && target.targets != nil {
		t, first := target.targets, int(r.of.First(r.kindOf(target.kind)))
		values := slices.Repeat([]float32{float32(math.NaN())}, int(c.Vertices)*len(t.at))
		copy(values[first*len(t.at):], t.values)
		t.values = values
		target.settleTargets(c)
	}
	return c
}

// addReverse adds the reverse relations of the flag. Those of --like exist already.
func (r *relatedImport) addReverse() {
	for i := range r.lists {
		x := r.of.Relations[i]
		if r.like == nil && (r.ReverseRelations == "on" || r.ReverseRelations != "off" && x.From != x.To) {
			r.of.AddReverse(i)
		}
	}
	for i, x := range r.of.Relations {
		switch {
		case x.Reverse:
			r.Log("relation=%s reverse of %s", r.of.Label(i), r.of.Label(x.Inverse))
		case x.Inverse < 0:
			r.Log("warning: relation=%s edges=%d without a reverse relation: information flows in one direction only; add one with "+
				"--reverse-relations on", r.of.Label(i), r.lists[i].pairs)
		default:
			r.Log("relation=%s edges=%d", r.of.Label(i), r.lists[i].pairs)
		}
	}
}

// relatedEdges are the edges of lists, whose ends are numbers within kinds, and their reverse relations.
type relatedEdges struct {
	of    *graph.Relations
	lists []edgeBuffer
}

// Each implements graph.EdgeSource.
func (e relatedEdges) Each(yield func(src, dst uint32) error) error {
	return e.EachRelation(func(src, dst uint32, _ uint16) error { return yield(src, dst) })
}

// EachRelation implements graph.RelatedSource.
func (e relatedEdges) EachRelation(yield func(src, dst uint32, relation uint16) error) error {
	for i, x := range e.of.Relations {
		from, to := uint32(e.of.First(x.From)), uint32(e.of.First(x.To))
		if err := e.within(i, func(src, dst uint32) error { return yield(src+from, dst+to, uint16(i)) }); err != nil {
			return err
		}
	}
	return nil
}

// within yields the edges of a relation. Their ends are numbers within their kinds.
func (e relatedEdges) within(relation int, yield func(src, dst uint32) error) error {
	x := e.of.Relations[relation]
	if !x.Reverse {
		return e.lists[relation].Each(yield)
	}
	return e.lists[x.Inverse].Each(func(src, dst uint32) error { return yield(dst, src) })
}

var _ graph.RelatedSource = relatedEdges{}
