package importers

import (
	"math"
	"slices"

	"siafu/graph"
)

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

// edgeColumns returns the columns that the flags name, or with --like those of the earlier
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
