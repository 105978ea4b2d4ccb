package importers

import (
	"fmt"
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
)

func (im *tableImport) chooseColumns() {
	if im.like != nil {
		im.table.Columns = slices.Clone(im.like.Table.Columns)
		for _, c := range im.table.Columns {
			im.columns = append(im.columns, newEncoder(c, im.nodes.needs(c.Name, "its name in "+im.TableOptions.Like)))
		}
		return
	}
	for i, p := range im.profiles {
		if p != nil {
			im.chooseColumn(i, p)
		}
	}
	reasons := ""
	for _, d := range im.table.Dropped[:min(len(im.table.Dropped), 5)] {
		reasons += fmt.Sprintf("; column %s is dropped, because %s", d.Name, d.Why)
	}
	im.nodes.require(len(im.columns) > 0 || im.kind != "", "add a column of numbers, or one of few different values",
		"no column becomes a feature%s", reasons)
}

func (im *tableImport) chooseColumn(i int, p *profile) {
	name := im.nodes.names[i]
	kind, reason := p.kind(im.nodes, i, im.asked(name))
	if kind == "" {
		im.nodes.require(!slices.Contains(im.Features, name), "leave it out of --features, or choose one of these",
			"%s cannot be a feature: %s", im.nodes.called(i), reason)
		im.drop(name, reason)
		return
	}
	c := graph.Column{Name: name, Kind: kind, Width: 1, Values: p.names(kind)}
	if len(im.columns) > 0 {
		last := im.columns[len(im.columns)-1]
		c.First = last.First + last.Width
	}
	switch kind {
	case graph.NumberColumn:
		c.Scale = 1
	case graph.DateColumn:
		c.Format, _ = p.dateFormat(im.nodes, i)
		c.Scale, c.Width = 1, p.dateWidth(c.Format)
	case graph.HashColumn:
		c.Width = hashedColumns
	default:
		c.Width = len(c.Values)
	}
	if im.Fill != "" && kind != graph.WordsColumn {
		c.Fill = new(float64)
	}
	if c.Width == 0 {
		im.drop(name, "it contains no words")
		return
	}
	im.columns = append(im.columns, newEncoder(c, i))
}

// measure gives numbers the mean and the scale of training rows.
func (im *tableImport) measure() {
	if im.like != nil {
		return
	}
	hasDates := slices.ContainsFunc(im.columns, func(e *encoder) bool { return e.Kind == graph.DateColumn })
	if im.Standardise || im.Fill == "mean" || hasDates {
		im.moments()
	}
	for _, e := range im.columns {
		im.table.Columns = append(im.table.Columns, e.Column)
	}
}

// eachVertex makes another pass over the vertices, by their numbers.
func (im *tableImport) eachVertex(yield func(v int, at int64, cells [][]byte)) {
	v, n := 0, im.ids.len()
	im.nodes.each(func(at int64, cells [][]byte) {
		if v++; v <= n {
			yield(v-1, at, cells)
		}
	})
	if v != n {
		check(fault.New(fault.IO, im.nodes.op, im.nodes.path, "it changed during the import, from %d rows to %d", n, v).
			Then("import it again while no program writes to it"))
	}
}

// moments is the pass over the vertices that finds mean and scale of numbers and dates.
func (im *tableImport) moments() {
	im.eachVertex(func(v int, _ int64, cells [][]byte) {
		for _, e := range im.columns {
			if x, ok := e.quantity(im.nodes, cells[e.at]); ok && (im.unlabelled || im.sets[v] == graph.SplitTrain) {
				e.counting.add(x)
			}
		}
	})
	for _, e := range im.columns {
		switch e.Kind {
		case graph.NumberColumn:
			e.settle(im.Options)
		case graph.DateColumn:
			e.settleDates(im.nodes)
		}
	}
}

// quantity reads the number that is standardised: of a date, its days.
func (e *encoder) quantity(t *tableFile, cell []byte) (float64, bool) {
	switch e.Kind {
	case graph.NumberColumn:
		return number(cell)
	case graph.DateColumn:
		i, ok := readInstant(cell, t.dateFormat(e.at, e.Format))
		return i.days(), ok
	}
	return 0, false
}

// encode is the pass over the vertices that makes features. Those of kinds are sparse.
func (im *tableImport) encode() graph.Features {
	r := newFeatureRows(im.resources, im.nodes.input, im.columns, im.ids.len(), im.kind != "")
	im.eachVertex(func(_ int, at int64, cells [][]byte) {
		r.next()
		for _, e := range im.columns {
			e.encode(im.nodes, at, cells[e.at], r)
		}
	})
	r.next()
	for i, e := range im.columns {
		im.table.Columns[i].Missing = e.missing
	}
	return r.Features
}
