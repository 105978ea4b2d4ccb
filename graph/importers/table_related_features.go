package importers

import (
	"cmp"
	"fmt"
	"slices"

	"siafu/graph"
)

// mostMeans is the maximum number of non-zeros of means of features by default: 1 GiB in a dataset.
const mostMeans = 1 << 27

// makeFeatures makes the features of all kinds, and records them as columns.
func (r *relatedImport) makeFeatures() {
	for i, k := range r.imports {
		if len(k.columns) > 0 {
			r.kinds[i].Features = k.encode()
		}
		if k.nodes != nil {
			k.logColumns()
		}
	}
	for i, k := range r.imports {
		if len(k.columns) == 0 {
			r.kinds[i].Features = r.featureless(i)
		}
		indicator := graph.Column{Name: k.kind, Kind: graph.IndicatorColumn, First: r.kinds[i].Features.Dim, Width: 1}
		k.table.Columns = append(k.table.Columns, indicator)
	}
}

// featureless makes the features of a kind without feature columns, and records them as columns.
func (r *relatedImport) featureless(kind int) graph.Features {
	k := r.imports[kind]
	list := k.derived
	if r.like == nil {
		list = r.chooseDerived(kind)
	}
	k.table.Columns = list
	for _, c := range list {
		if c.Kind != list[0].Kind || c.Kind == graph.MeanColumn && len(r.imports[r.of.Kind(c.Name)].columns) == 0 {
			r.resources.refuse("import the training data again", "--like=%s has means of kind %s, which has no feature columns",
				r.TableOptions.Like, c.Name)
		}
	}
	switch {
	case len(list) == 0:
		return graph.Features{Rows: k.ids.len()}
	case list[0].Kind == graph.MeanColumn:
		k.Log("features: means of the features of neighbours")
		return r.means(kind, list)
	}
	e, known, row := newEncoder(list[0], -1), 0, newSparseRows(k.ids.len(), list[0].Width)
	for v := range uint32(k.ids.len()) {
		row.next()
		if i, ok := e.index[string(k.ids.at(v))]; ok {
			known++
			row.put(int(i), 1)
		}
	}
	row.next()
	k.Log("features: one-hot ids, columns=%d; vertices without a column, because they are new since training: %d",
		list[0].Width, k.ids.len()-known)
	return row.Features
}

// chooseDerived returns columns for a kind without feature columns, by --featureless and by size.
func (r *relatedImport) chooseDerived(kind int) (list []graph.Column) {
	k := r.imports[kind]
	n := k.ids.len()
	isAuto := !isSet(r.Featureless)
	switch {
	case r.Featureless == "none":
		return nil
	case r.Featureless == "ids", isAuto && n <= maxIDFeatures:
		if n > mostValues {
			r.resources.refuse(fmt.Sprintf("use --featureless mean or none; ids are for at most %d vertices of a kind", mostValues),
				"--featureless=ids: kind %s has %d vertices", k.kind, n)
		}
		c := graph.Column{Name: cmp.Or(k.table.ID, "id"), Kind: graph.CategoryColumn, Width: n, Fill: new(float64)}
		for v := range n {
			c.Values = append(c.Values, string(k.ids.at(uint32(v))))
		}
		return []graph.Column{c}
	}
	first, values := 0, int64(0)
	for from, of := range r.imports {
		x := r.kinds[from].Features
		if len(of.columns) > 0 && r.eachNeighbour(kind, from, func(_, u uint32) { values += x.Sparse.Offsets[u+1] - x.Sparse.Offsets[u] }) {
			list = append(list, graph.Column{Name: of.kind, Kind: graph.MeanColumn, First: first, Width: x.Dim})
			first += x.Dim
		}
	}
	if isAuto && values > mostMeans {
		return nil
	}
	return list
}

// eachNeighbour calls yield for each edge from kind from to kind to, and reports whether there is a
// relation between them.
func (r *relatedImport) eachNeighbour(to, from int, yield func(v, u uint32)) (related bool) {
	for i, list := range r.lists {
		x := r.of.Relations[i]
		if x.From == from && x.To == to {
			related = true
			list.Each(func(u, v uint32) error { yield(v, u); return nil })
		}
		if x.Inverse >= 0 && x.From == to && x.To == from {
			related = true
			list.Each(func(v, u uint32) error { yield(v, u); return nil })
		}
	}
	return related
}

// means makes the columns of means of neighbours' features.
func (r *relatedImport) means(kind int, list []graph.Column) graph.Features {
	n := r.imports[kind].ids.len()
	neighbours, rows := make([]graph.CSR, len(list)), make([]*graph.SparseRows, len(list)) // neighbours repeat as edges do
	for i, c := range list {
		from, offsets := r.of.Kind(c.Name), make([]int64, n+2)
		r.eachNeighbour(kind, from, func(v, _ uint32) { offsets[v+2]++ })
		for v := range n {
			offsets[v+2] += offsets[v+1]
		}
		cols := make([]uint32, offsets[n+1])
		r.eachNeighbour(kind, from, func(v, u uint32) {
			cols[offsets[v+1]] = u
			offsets[v+1]++
		})
		neighbours[i], rows[i] = graph.CSR{Offsets: offsets[:n+1], Cols: cols}, r.kinds[from].Features.Sparse
	}
	last := list[len(list)-1]
	out := newSparseRows(n, last.First+last.Width)
	sums := make([]float64, out.Dim)
	var touched []uint32
	for v := range n {
		out.next()
		for i, c := range list {
			x, near := rows[i], neighbours[i].Row(v)
			touched = touched[:0]
			for _, u := range near {
				for j := x.Offsets[u]; j < x.Offsets[u+1]; j++ {
					if sums[x.Cols[j]] == 0 {
						touched = append(touched, x.Cols[j])
					}
					sums[x.Cols[j]] += float64(x.Vals[j])
				}
			}
			slices.Sort(touched)
			for _, col := range slices.Compact(touched) {
				out.put(c.First+int(col), sums[col]/float64(len(near)))
				sums[col] = 0
			}
		}
	}
	out.next()
	return out.Features
}
