package importers

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"siafu/graph"
)

// edgeTable is the table of edges.
type edgeTable struct {
	*tableFile
	ends              [2]int // columns of source and destination
	weight            int    // -1: edges have none
	zeros, unknown    int64  // omitted edges
	dropWeights, drop bool
	dropped           bool // weights that are not 1
	ids               *idIndex
	out               *weightedEdges
	columns           []*encoder // of features
	row               featureRows
}

// readEdges reads the table of edges. Their ends are ids of vertices. It omits edges of weight 0.
// If all other weights are 1, edges have no weights.
func (im *tableImport) readEdges() graph.EdgeSource {
	e := &edgeTable{ids: im.ids, dropWeights: im.DropWeights, drop: im.DropUnknown, tableFile: im.openTable(im.Edges, "edges")}
	e.findColumns(im.TableOptions)
	e.findLike(im)
	e.chooseFeatures(im)
	e.out = newWeightedEdges(im.resources, e.input)
	e.out.dim = len(e.columns)
	check(e.eachEdge(func(at int64, cells [][]byte, pair [2]uint32, weight float32) error {
		for _, c := range e.columns {
			if err := c.encode(e.tableFile, at, cells[c.at], &e.row); err != nil {
				return err
			}
		}
		if err := e.out.features.add(e.row.Dense); err != nil {
			return err
		}
		return e.out.put(pair, weight)
	}))
	for i, c := range e.columns {
		im.table.EdgeColumns[i].Missing = c.missing
	}
	e.logOmitted(im)
	return e.out.source()
}

// eachEdge visits the rows that are edges.
func (e *edgeTable) eachEdge(yield func(at int64, cells [][]byte, pair [2]uint32, weight float32) error) error {
	e.zeros, e.unknown = 0, 0
	return e.each(func(at int64, cells [][]byte) error {
		var pair [2]uint32
		weight, err := e.edge(at, cells, &pair)
		if err != nil || weight == 0 {
			return err
		}
		return yield(at, cells, pair, weight)
	})
}

// findColumns finds ends and weights.
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
func (e *edgeTable) edge(at int64, cells [][]byte, pair *[2]uint32) (weight float32, err error) {
	for i, column := range e.ends {
		var known bool
		if pair[i], known = e.ids.find(cells[column]); known {
			continue
		}
		if len(cells[column]) > 0 && e.drop {
			e.unknown++
			return 0, nil
		}
		return 0, e.unknownEnd(at, column, cells[column])
	}
	if e.weight < 0 {
		return 1, nil
	}
	return e.readWeight(at, cells[e.weight])
}

// unknownEnd returns the fault of an end that is not a vertex.
func (e *edgeTable) unknownEnd(at int64, column int, id []byte) error {
	if len(id) == 0 {
		return e.fault(at, column, id, "is not an id").Then("write the id of the vertex, or remove the edge")
	}
	f := e.fault(at, column, id, "is not an id in the vertex table")
	if whole, ok := bytes.CutSuffix(id, []byte(".0")); ok {
		if _, known := e.ids.find(whole); known {
			return f.Then("write %s, as in the vertex table", whole)
		}
	}
	return f.Then("add the vertex to the vertex table, or drop such edges with --drop-unknown")
}

func (e *edgeTable) readWeight(at int64, cell []byte) (float32, error) {
	w, ok := number(cell)
	switch {
	case !ok:
		return 0, e.fault(at, e.weight, cell, "is not a weight").Then("write a number")
	case w < 0:
		return 0, e.fault(at, e.weight, cell, "is a negative weight").Then("remove the edge, or drop all weights with --drop-weights")
	case float32(w) == 0:
		e.zeros++
		return 0, nil
	case e.dropWeights:
		e.dropped = e.dropped || w != 1
		return 1, nil
	}
	return float32(w), nil
}

func (e *edgeTable) logOmitted(im *tableImport) {
	var unused []string
	for i, name := range e.names {
		feature := slices.ContainsFunc(e.columns, func(c *encoder) bool { return c.at == i })
		if i != e.ends[0] && i != e.ends[1] && i != e.weight && !feature {
			unused = append(unused, cmp.Or(name, e.called(i)+" without a name"))
		}
	}
	if len(unused) > 0 {
		im.Log("warning: edges=%s not used: columns %s; import numeric columns with --edge-features", e.path, strings.Join(unused, ", "))
	}
	for _, c := range e.columns {
		im.Log("edges=%s %s", e.path, c)
	}
	if e.dropped {
		im.Log("warning: edges=%s weights are dropped", e.path)
	}
	if e.zeros+e.unknown > 0 {
		im.Log("edges=%s left_out: weight_0=%d unknown_ends=%d", e.path, e.zeros, e.unknown)
	}
}

// chooseFeatures finds the columns that become edge features. To scale or fill them it reads
// the edges once.
func (e *edgeTable) chooseFeatures(im *tableImport) {
	list := e.edgeColumns(im)
	for i, c := range list {
		at := e.needs(c.Name, "--edge-features")
		if at == e.ends[0] || at == e.ends[1] || slices.ContainsFunc(list[:i], func(b graph.Column) bool { return b.Name == c.Name }) {
			e.refuse("leave it out", "--edge-features names %s, which is an end of edges or named twice", c.Name)
		}
		c.First = i
		e.columns = append(e.columns, newEncoder(c, at))
	}
	if len(list) > 0 && (im.Standardise || im.Fill == "mean") && im.like == nil {
		e.measure(im.Options)
	}
	for _, c := range e.columns {
		im.table.EdgeColumns = append(im.table.EdgeColumns, c.Column)
	}
	e.row = featureRows{Features: graph.Features{Rows: 1, Dim: len(e.columns), Dense: make([]float32, len(e.columns))}}
}

// edgeColumns returns the columns that the flags name, or with --like the columns of the earlier
// dataset.
func (e *edgeTable) edgeColumns(im *tableImport) (list []graph.Column) {
	if im.like != nil {
		return slices.Clone(im.like.Table.EdgeColumns)
	}
	for _, name := range im.EdgeFeatures {
		c := graph.Column{Name: name, Kind: graph.NumberColumn, Width: 1, Scale: 1}
		if im.Fill != "" {
			c.Fill = new(float64)
		}
		list = append(list, c)
	}
	return list
}

// measure finds the means of columns, and their scales, over all edges.
func (e *edgeTable) measure(o Options) {
	check(e.eachEdge(func(_ int64, cells [][]byte, _ [2]uint32, _ float32) error {
		for _, c := range e.columns {
			if x, ok := number(cells[c.at]); ok {
				c.counting.add(x)
			}
		}
		return nil
	}))
	for _, c := range e.columns {
		c.settle(o)
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

// standardise sets mean and scale from the moments. A constant column keeps its scale.
func (e *encoder) standardise() {
	m := e.counting
	e.Mean = m.mean
	if deviation := math.Sqrt(m.squares / m.n); deviation > 0 {
		e.Scale = deviation
	}
}
