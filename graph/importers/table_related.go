package importers

import (
	"cmp"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

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

// readRelated makes a relational dataset.
func (im *tableImport) readRelated() *graph.Content {
	r := &relatedImport{tableImport: im}
	r.checkFlags()
	if im.Relation != "" {
		r.addKind(oneKind, im.Nodes)
	} else {
		r.findTables()
	}
	r.openKinds()
	for _, k := range r.tables() {
		k.survey()
		k.settleClasses()
	}
	r.shareClasses()
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
	at, tables := r.resources.in(folder), map[string]input{}
	files, _ := os.ReadDir(at.path) // without a folder, there are no tables
	for _, f := range files {
		if tableFormatOf(f.Name()) == nil {
			check(unreadTable(at, strings.TrimSuffix(f.Name(), filepath.Ext(f.Name()))))
			continue
		}
		name := tableName(f.Name())
		if !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return c == ':' || c < ' ' }) {
			at.refuse("rename it", "%q has a colon, a control character or no UTF-8 in its name", f.Name())
		}
		if before, twice := tables[name]; twice {
			at.refuse("remove one of them", "%s and %s are tables of the same name", filepath.Base(before.path), f.Name())
		}
		tables[name] = at.in(f.Name())
	}
	return tables
}

// findTables finds kinds and relations by the names of files, in the order of the names.
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
				ends[i] = len(r.kinds)
				r.addKind(kind, "")
			}
		}
		r.of.Relations = append(r.of.Relations, graph.Relation{Name: parts[1], From: ends[0], To: ends[1], Inverse: -1})
		r.files = append(r.files, relations[name])
	}
	if r.like != nil {
		r.sameTables()
	}
}

// sameTables requires the tables of --like. The names of tables determine the order of kinds and relations.
func (r *relatedImport) sameTables() {
	names := func(of *graph.Relations, hasTable func(kind int) bool) (list []string) {
		for k, kind := range of.Kinds {
			if hasTable(k) {
				list = append(list, kindFolder+"/"+kind.Name)
			}
		}
		for _, x := range of.Relations {
			if !x.Reverse {
				name := strings.Join([]string{of.Kinds[x.From].Name, x.Name, of.Kinds[x.To].Name}, nameSeparator)
				list = append(list, relationFolder+"/"+name)
			}
		}
		return list
	}
	like := r.like.Relations
	want := names(like, func(k int) bool { return like.Kinds[k].Table.ID != "" })
	have := names(&r.of, func(k int) bool { return r.kinds[k].Nodes != "" })
	sameName := func(a, b graph.VertexKind) bool { return a.Name == b.Name }
	if !slices.Equal(have, want) || !slices.EqualFunc(r.of.Kinds, like.Kinds, sameName) {
		r.resources.refuse("write the same tables; a relation without edges is a table with only a heading",
			"its tables are %s, those of --like=%s are %s", strings.Join(have, ", "), r.TableOptions.Like, strings.Join(want, ", "))
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

// shareClasses requires that all labelled kinds have the same classes.
func (r *relatedImport) shareClasses() {
	labelled := slices.DeleteFunc(r.tables(), func(k *tableImport) bool { return k.unlabelled })
	for _, k := range labelled[min(1, len(labelled)):] {
		first := labelled[0]
		if k.targets != nil || first.targets != nil || !slices.Equal(k.classes.names, first.classes.names) {
			r.resources.refuse("label one kind with --label KIND.COLUMN, or write the same classes in both",
				"the kinds %s and %s have labels, but not of the same classes", first.kind, k.kind)
		}
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

// addReverse adds the reverse relations of the flag or of --like.
func (r *relatedImport) addReverse() {
	isReverse := func(x, of graph.Relation) bool { return x.Name == "rev_"+of.Name && x.From == of.To && x.To == of.From }
	own := r.of.Relations
	for i, x := range own {
		adds := r.ReverseRelations == "on" || r.ReverseRelations != "off" && x.From != x.To
		if r.like != nil {
			adds = r.like.Relations.Relations[i].Inverse >= 0
		}
		r.Log("relation=%s edges=%d", r.of.Label(i), r.lists[i].pairs)
		if slices.ContainsFunc(own, func(y graph.Relation) bool { return isReverse(x, y) || isReverse(y, x) }) {
			continue
		}
		if !adds {
			r.Log("warning: relation=%s has no reverse relation, and information flows in one direction only; add one with "+
				"--reverse-relations on", r.of.Label(i))
			continue
		}
		reverse := r.of.AddReverse(i)
		r.Log("relation=%s reverse of %s", r.of.Label(reverse), r.of.Label(i))
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
