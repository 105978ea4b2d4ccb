package importers

import (
	"maps"
	"slices"

	"siafu/graph"
	"siafu/internal/catalog"
)

// readRelations reads the edges of all relations.
func (r *relatedImport) readRelations() {
	if r.Relation != "" {
		r.readColumn()
		return
	}
	r.edges = graph.EdgeImport{WeightsDropped: r.DropWeights}
	for i, at := range r.files {
		x := &r.of.Relations[i]
		t := tableFormatOf(at.path).open(at)
		ends := r.Ends
		if r.like != nil {
			ends = r.like.Relations.Relations[i].Ends
		}
		if len(ends) == 0 && (t.column("src") < 0 || t.column("dst") < 0) {
			t.require(len(t.names) > 1, "write a column of sources and one of destinations", "%s 1: it has one column", t.unit)
			ends = t.names[:2]
		}
		e := r.openEdges(t, ends, [2]*tableImport{r.imports[x.From], r.imports[x.To]})
		x.Ends = []string{e.names[e.ends[0]], e.names[e.ends[1]]}
		list := r.lists[i].(edgeBuffer)
		e.eachEdge(func(_ int64, _ [][]byte, pair [2]uint32, _ float32) { list.add(pair[:]) })
		if e.logOmitted(); e.rows == 0 {
			r.Log("warning: relation %s has no edges: %s has no rows", r.of.Label(i), e.path)
		}
	}
	for _, k := range r.imports {
		if k.nodes == nil && r.like == nil {
			r.warnOfTable(k)
		}
	}
}

// warnOfTable warns of a kind without a table, whose name may be a typing error.
func (r *relatedImport) warnOfTable(k *tableImport) {
	meant, least := "", len(k.kind)/3
	ids := k.ids.ids()
	for _, other := range r.tables() {
		if d := catalog.Distance(k.kind, other.kind); d <= least {
			meant, least = other.kind, d
		} else if meant == "" && ids != nil && ids.Offsets != nil && k.within(other) { // numbers are ids of many kinds
			meant = other.kind
		}
	}
	if meant != "" {
		meant = "; did you mean " + meant + "?"
	}
	r.Log("warning: kind %s has no table nodes/%s.csv: its vertices are the ids in its relations%s", k.kind, k.kind, meant)
}

// within reports whether all ids of a kind are also ids of another.
func (im *tableImport) within(other *tableImport) bool {
	for v := range im.ids.len() {
		if _, known := other.ids.find(im.ids.at(uint32(v))); !known {
			return false
		}
	}
	return true
}

// openEdges finds the columns of a table of edges, and refuses weights.
func (r *relatedImport) openEdges(t *tableFile, ends []string, kinds [2]*tableImport) *edgeTable {
	e := &edgeTable{im: r.tableImport, tableFile: t, kinds: kinds, relation: -1}
	o := r.TableOptions
	o.Ends = ends
	e.findColumns(o)
	if e.weight >= 0 && !r.DropWeights {
		e.refuse("ignore it with --drop-weights", "it has a column weight, but relations have no weights")
	}
	return e
}

// readColumn reads a table of edges with a column of relations, in the order of their names or of --like.
func (r *relatedImport) readColumn() {
	kind := r.imports[0]
	e := r.openEdges(r.openTable(r.Edges, relationFolder), r.Ends, [2]*tableImport{kind, kind})
	e.findLike()
	e.relation = e.needs(r.Relation, "--relation")
	r.edges.Relation = r.Relation
	lists := map[string]edgeBuffer{}
	if r.like != nil {
		for _, x := range r.like.Relations.Relations {
			if !x.Reverse {
				lists[x.Name] = newEdgeBuffer(r.resources, e.input)
			}
		}
	}
	e.eachEdge(func(at int64, cells [][]byte, pair [2]uint32, _ float32) {
		name := string(cells[e.relation])
		list, found := lists[name]
		if !found {
			bad := e.fault(at, e.relation, cells[e.relation], "is not a relation")
			switch {
			case name == "":
				check(bad.Then("write the name of the edge's relation"))
			case r.like != nil:
				check(bad.Then("remove the edge: --like=%s has no such relation", r.TableOptions.Like))
			case len(lists) == mostRelations:
				check(bad.Then("name a column with at most %d different texts with --relation", mostRelations))
			}
			checkID(e.tableFile, e.relation, at, cells[e.relation])
			list = newEdgeBuffer(r.resources, e.input)
			lists[name] = list
		}
		list.add(pair[:])
	})
	e.logOmitted()
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		r.of.Relations = append(r.of.Relations, graph.Relation{Name: name, Inverse: -1})
		r.lists = append(r.lists, lists[name])
	}
}
