package importers

import (
	"math"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
)

// chooseFeatures finds the columns that become edge features. To scale or fill them it reads
// the edges once.
func (e *edgeTable) chooseFeatures(im *tableImport) error {
	list, err := e.edgeColumns(im)
	if err != nil || len(list) == 0 {
		return err
	}
	for i, c := range list {
		at, err := e.needs(c.Name, "--edge-features")
		if err != nil {
			return err
		}
		if at == e.ends[0] || at == e.ends[1] || slices.ContainsFunc(list[:i], func(b graph.Column) bool { return b.Name == c.Name }) {
			return fault.New(fault.Usage, e.op, e.path, "--edge-features names %s, which is an end of edges or named twice", c.Name).Then("leave it out")
		}
		c.First = i
		e.columns = append(e.columns, newEncoder(c, at))
	}
	if (im.Standardise || im.Fill == "mean") && im.like == nil {
		if err := e.measure(im.Options); err != nil {
			return err
		}
	}
	for _, c := range e.columns {
		im.table.EdgeColumns = append(im.table.EdgeColumns, c.Column)
	}
	e.row = featureRows{Features: graph.Features{Rows: 1, Dim: len(e.columns), Dense: make([]float32, len(e.columns))}}
	return nil
}

// edgeColumns returns the columns that the flags name, or with --like those of the earlier
// dataset.
func (e *edgeTable) edgeColumns(im *tableImport) (list []graph.Column, err error) {
	if im.like != nil {
		return slices.Clone(im.like.Table.EdgeColumns), nil
	}
	for _, name := range im.EdgeFeatures {
		c := graph.Column{Name: name, Kind: graph.NumberColumn, Width: 1, Scale: 1}
		if im.Fill != "" {
			c.Fill = new(float64)
		}
		list = append(list, c)
	}
	return list, nil
}

// measure finds the means of columns, and their scales, over all edges.
func (e *edgeTable) measure(o Options) error {
	err := e.eachEdge(func(_ int64, cells [][]byte, _ [2]uint32, _ float32) error {
		for _, c := range e.columns {
			if x, ok := number(cells[c.at]); ok {
				c.counting.add(x)
			}
		}
		return nil
	})
	for _, c := range e.columns {
		c.settle(o)
	}
	return err
}

// settle sets means and scales from the moments, as the flags request.
func (e *encoder) settle(o Options) {
	m := e.counting
	if o.Fill == "mean" {
		*e.Fill = m.mean
	}
	if o.Standardise {
		e.Mean = m.mean
		if deviation := math.Sqrt(m.squares / m.n); deviation > 0 {
			e.Scale = deviation
		}
	}
}

// putFeatures reads the features of the edge of a row.
func (e *edgeTable) putFeatures(at int64, cells [][]byte) error {
	for _, c := range e.columns {
		if err := c.encode(e.tableFile, at, cells[c.at], &e.row); err != nil {
			return err
		}
	}
	return e.out.features.add(e.row.Dense)
}
