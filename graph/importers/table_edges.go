package importers

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"siafu/graph"
)

type edgeTable struct {
	*tableFile
	im             *tableImport
	kinds          [2]*tableImport // of the ends
	ends           [2]int          // columns of source and destination
	weight         int             // -1: edges have none
	relation       int             // column of relations, -1: none
	zeros, unknown int64           // omitted edges
	without        int64           // omitted edges with a missing end, such as an empty foreign key
	rows           int64           // of the last pass
	dropped        bool            // weights that are not 1
	columns        []*encoder      // of features
	row            featureRows
}

// readEdges reads the table of edges. Their ends are ids of vertices. It omits edges of weight 0.
// If all other weights are 1, edges have no weights.
func (im *tableImport) readEdges() graph.EdgeSource {
	e := &edgeTable{im: im, tableFile: im.openTable(im.Edges, "edges"), kinds: [2]*tableImport{im, im}, relation: -1}
	e.findColumns(im.TableOptions)
	e.findLike()
	e.blank(im.missing, e.ends[0], e.ends[1])
	e.chooseFeatures()
	out := newWeightedEdges(im.resources, e.input)
	out.dim = len(e.columns)
	e.eachEdge(func(at int64, cells [][]byte, pair [2]uint32, weight float32) {
		for _, c := range e.columns {
			c.encode(e.tableFile, at, cells[c.at], &e.row)
		}
		out.features.add(e.row.Dense)
		out.put(pair, weight)
	})
	for i, c := range e.columns {
		im.table.EdgeColumns[i].Missing = c.missing
	}
	e.logOmitted()
	return out.source()
}

func (e *edgeTable) eachEdge(yield func(at int64, cells [][]byte, pair [2]uint32, weight float32)) {
	e.zeros, e.unknown, e.without, e.rows = 0, 0, 0, 0
	e.each(func(at int64, cells [][]byte) {
		e.rows++
		var pair [2]uint32
		if weight := e.edge(at, cells, &pair); weight != 0 {
			yield(at, cells, pair, weight)
		}
	})
}

func (e *edgeTable) findColumns(o TableOptions) {
	ends := o.Ends
	if len(ends) == 0 {
		ends = []string{"src", "dst"}
	}
	for i, name := range ends {
		e.ends[i] = e.needs(name, "--ends")
	}
	if e.weight = e.column(cmp.Or(o.Weight, "weight")); o.Weight != "" {
		e.needs(o.Weight, "--weight")
	} else if slices.Contains(o.EdgeFeatures, "weight") {
		e.weight = -1 // it is a feature, and not a weight unless the user requests that, too
	}
}

// edge reads the edge of a row, and its weight, 0 if there is no edge.
func (e *edgeTable) edge(at int64, cells [][]byte, pair *[2]uint32) (weight float32) {
	for i, column := range e.ends {
		if kind := e.kinds[i]; kind.missing.has(cells[column]) {
			if _, known := kind.ids.find(cells[column]); !known {
				e.without++
				return 0
			}
		}
	}
	for i, column := range e.ends {
		var known bool
		kind := e.kinds[i]
		if pair[i], known = kind.ids.find(cells[column]); known {
			continue
		}
		if kind.nodes == nil {
			checkID(e.tableFile, column, at, cells[column])
			pair[i], _ = kind.ids.add(cells[column])
			continue
		}
		if e.im.DropUnknown {
			e.unknown++
			return 0
		}
		check(e.unknownEnd(at, column, cells[column], kind))
	}
	if e.weight < 0 {
		return 1
	}
	return e.readWeight(at, cells[e.weight])
}

func (e *edgeTable) unknownEnd(at int64, column int, id []byte, kind *tableImport) error {
	f := e.fault(at, column, id, "is not an id in %s", kind.called())
	if whole, ok := bytes.CutSuffix(id, []byte(".0")); ok {
		if _, known := kind.ids.find(whole); known {
			return f.Then("write %s, as in %s", whole, kind.called())
		}
	}
	return f.Then("add the vertex to %s, or drop such edges with --drop-unknown", kind.called())
}

// called returns the table of vertices in the user's words.
func (im *tableImport) called() string {
	if im.kind == "" || im.Relation != "" {
		return "the vertex table"
	}
	return im.Nodes
}

func (e *edgeTable) readWeight(at int64, cell []byte) float32 {
	w, ok := number(cell)
	switch {
	case !ok:
		check(e.fault(at, e.weight, cell, "is not a weight").Then("%s", writeNumber(cell, "write a number")))
	case w < 0:
		check(e.fault(at, e.weight, cell, "is a negative weight").Then("remove the edge, or drop all weights with --drop-weights"))
	case float32(w) == 0:
		e.zeros++
		return 0
	case e.im.DropWeights:
		e.dropped = e.dropped || w != 1
		return 1
	}
	return float32(w)
}

func (e *edgeTable) logOmitted() {
	var unused []string
	remedy := "import numeric columns with --edge-features"
	if e.kinds[0].kind != "" {
		remedy = "relations have no weights and no edge features"
	}
	for i, name := range e.names {
		feature := slices.ContainsFunc(e.columns, func(c *encoder) bool { return c.at == i })
		if i != e.ends[0] && i != e.ends[1] && i != e.weight && i != e.relation && !feature {
			unused = append(unused, cmp.Or(name, e.called(i)+" without a name"))
		}
	}
	if len(unused) > 0 {
		e.im.Log("warning: edges=%s not used: columns %s; %s", e.path, strings.Join(unused, ", "), remedy)
	}
	for _, c := range e.columns {
		e.im.Log("edges=%s %s", e.path, c)
	}
	if e.dropped {
		e.im.Log("warning: edges=%s weights are dropped", e.path)
	}
	switch lost := e.zeros + e.unknown; {
	case isLarge(lost, e.rows):
		e.im.Log("warning: edges=%s: %d of %d edges are left out: weight_0=%d unknown_ends=%d without_end=%d; check the weights, and "+
			"write ids as in the vertex table", e.path, lost+e.without, e.rows, e.zeros, e.unknown, e.without)
	case lost+e.without > 0:
		e.im.Log("edges=%s left_out: weight_0=%d unknown_ends=%d without_end=%d", e.path, e.zeros, e.unknown, e.without)
	}
}

// chooseFeatures finds the columns that become edge features. To scale or fill them it reads
// the edges once.
func (e *edgeTable) chooseFeatures() {
	list := e.edgeColumns()
	for i, c := range list {
		at := e.needs(c.Name, "--edge-features")
		if at == e.ends[0] || at == e.ends[1] || slices.ContainsFunc(list[:i], func(b graph.Column) bool { return b.Name == c.Name }) {
			e.refuse("leave it out", "--edge-features names %s, which is an end of edges or named twice", c.Name)
		}
		c.First = i
		e.columns = append(e.columns, newEncoder(c, at))
	}
	if len(list) > 0 && (e.im.Standardise || e.im.Fill == "mean") && e.im.like == nil {
		e.measure()
	}
	for _, c := range e.columns {
		e.im.table.EdgeColumns = append(e.im.table.EdgeColumns, c.Column)
	}
	e.row = featureRows{Features: graph.Features{Rows: 1, Dim: len(e.columns), Dense: make([]float32, len(e.columns))}}
}

// edgeColumns returns the columns that the flags name, or with --like the columns of the earlier
// dataset.
func (e *edgeTable) edgeColumns() (list []graph.Column) {
	if e.im.like != nil {
		return slices.Clone(e.im.like.Table.EdgeColumns)
	}
	for _, name := range e.im.EdgeFeatures {
		c := graph.Column{Name: name, Kind: graph.NumberColumn, Width: 1, Scale: 1}
		if e.im.Fill != "" {
			c.Fill = new(float64)
		}
		list = append(list, c)
	}
	return list
}

// measure finds the means of columns, and their scales, over all edges.
func (e *edgeTable) measure() {
	e.eachEdge(func(_ int64, cells [][]byte, _ [2]uint32, _ float32) {
		for _, c := range e.columns {
			if x, ok := number(cells[c.at]); ok {
				c.counting.add(x)
			}
		}
	})
	for _, c := range e.columns {
		c.settle(e.im.Options)
	}
}

// settle sets means and scales from the moments, as the flags request.
func (e *encoder) settle(o Options) {
	if o.Fill == "mean" {
		*e.Fill = e.counting.mean
	}
	if o.Standardise {
		e.standardise()
	}
}

// standardise sets mean and scale from the moments.
func (e *encoder) standardise() {
	s := e.counting.scaling()
	e.Mean, e.Scale = s.Mean, s.Scale
}
