package importers

import (
	"cmp"
	"fmt"
	"slices"

	"siafu/graph"
)

// mostIDs is the largest number of vertices of a kind whose ids become features by default. Each id is a
// row of the first weight matrix, which every rank stores and updates in every step, and a text in the
// schema of the model. With 64 hidden features, 10,000 ids are 640,000 weights.
const mostIDs = 10_000

// mostMeans is the maximum number of non-zeros of means of features by default: 1 GiB in a dataset.
const mostMeans = 1 << 27

// features makes the features of all kinds: a block of columns for each, which begins with the indicator.
func (r *relatedImport) features() graph.Features {
	blocks, n := make([]graph.Features, len(r.kinds)), 0
	own := make([]bool, len(r.kinds)) // kinds with features of their own columns
	for i, k := range r.kinds {
		if n += k.ids.len(); len(k.columns) == 0 {
			continue
		}
		blocks[i], own[i] = k.encode(), true
		for c, e := range k.columns {
			k.table.Columns[c].Missing = e.missing
		}
	}
	for i, k := range r.kinds {
		if k.nodes != nil {
			k.logColumns()
		}
		if !own[i] {
			blocks[i] = r.featureless(i, blocks, own)
		}
		k.table.Columns = slices.Insert(k.table.Columns, 0, graph.Column{Name: k.kind, Kind: graph.IndicatorColumn, Width: 1})
		k.Log("vertices=%d features=%d%s", k.ids.len(), blocks[i].Dim, k.features)
	}
	return r.join(blocks, n)
}

// join puts the blocks of kinds below and beside one another.
func (r *relatedImport) join(blocks []graph.Features, n int) graph.Features {
	all := newSparseRows(n, 0)
	for i, b := range blocks {
		r.of.Kinds[i].FirstFeature, r.of.Kinds[i].Features = all.Dim, b.Dim
		before := int64(len(all.Sparse.Vals))
		for _, c := range b.Sparse.Cols {
			all.Sparse.Cols = append(all.Sparse.Cols, uint32(all.Dim)+c)
		}
		all.Sparse.Vals = append(all.Sparse.Vals, b.Sparse.Vals...)
		for _, o := range b.Sparse.Offsets[1:] {
			all.Sparse.Offsets = append(all.Sparse.Offsets, before+o)
		}
		all.Dim += b.Dim
		blocks[i] = graph.Features{} // frees it
	}
	return all.Features
}

// featureless makes the features of a kind without feature columns, and records them as columns.
func (r *relatedImport) featureless(kind int, blocks []graph.Features, own []bool) graph.Features {
	k := r.kinds[kind]
	list := k.derived
	if r.like == nil {
		list = r.chooseDerived(kind, blocks, own)
	} else if len(list) > 0 {
		list = list[1:] // without the indicator
	}
	k.table.Columns = list
	if i := slices.IndexFunc(list, func(c graph.Column) bool {
		return c.Kind == graph.MeanColumn && !own[r.kindOf(c.Name)]
	}); i >= 0 {
		r.resources.refuse("import the training data again", "--like=%s has means of kind %s, which has no feature columns",
			r.TableOptions.Like, list[i].Name)
	}
	switch {
	case len(list) == 0:
		k.features = ": only the indicator"
		return k.eachID(1, func(int, *featureRows) {})
	case list[0].Kind == graph.MeanColumn:
		return r.means(kind, list, blocks)
	}
	e := newEncoder(list[0], -1)
	known := 0
	out := k.eachID(1+e.Width, func(v int, row *featureRows) {
		if i, ok := e.index[string(k.ids.at(uint32(v)))]; ok {
			known++
			row.put(1+int(i), 1)
		}
	})
	k.features = ": one for each id"
	if known < k.ids.len() {
		k.features += fmt.Sprintf(" of the training data; %d ids are new and set none", k.ids.len()-known)
	}
	return out
}

// eachID makes features of which the first is 1. put sets the others of vertex v.
func (im *tableImport) eachID(dim int, put func(v int, row *featureRows)) graph.Features {
	row := newSparseRows(im.ids.len(), dim)
	row.row = -1
	for v := range im.ids.len() {
		row.next()
		row.put(0, 1)
		put(v, row)
	}
	row.next()
	return row.Features
}

// chooseDerived returns columns for a kind without feature columns, by --featureless and by size.
func (r *relatedImport) chooseDerived(kind int, blocks []graph.Features, own []bool) (list []graph.Column) {
	k := r.kinds[kind]
	n := k.ids.len()
	isAuto := !isSet(r.Featureless)
	switch {
	case r.Featureless == "none":
		return nil
	case r.Featureless == "ids", isAuto && n <= mostIDs:
		if n > mostValues {
			r.resources.refuse(fmt.Sprintf("use --featureless mean or none; ids are for at most %d vertices of a kind", mostValues),
				"--featureless=ids: kind %s has %d vertices", k.kind, n)
		}
		c := graph.Column{Name: cmp.Or(k.table.ID, "id"), Kind: graph.CategoryColumn, First: 1, Width: n, Fill: new(float64)}
		for v := range n {
			c.Values = append(c.Values, string(k.ids.at(uint32(v))))
		}
		return []graph.Column{c}
	}
	first, values := 1, int64(0)
	for from := range r.kinds {
		if own[from] && r.eachNeighbour(kind, from, func(_, u uint32) {
			x := blocks[from].Sparse
			values += x.Offsets[u+1] - x.Offsets[u] - 1
		}) {
			list = append(list, graph.Column{Name: r.kinds[from].kind, Kind: graph.MeanColumn, First: first, Width: blocks[from].Dim - 1})
			first += blocks[from].Dim - 1
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
	edges := relatedEdges{&r.of, r.lists}
	for i, x := range r.of.Relations {
		if x.From == from && x.To == to {
			related = true
			edges.within(i, func(u, v uint32) error { yield(v, u); return nil })
		}
	}
	return related
}

// means makes the columns of means of neighbours' features.
func (r *relatedImport) means(kind int, list []graph.Column, blocks []graph.Features) graph.Features {
	k := r.kinds[kind]
	k.features = ": means of the features of neighbours"
	neighbours := make([]graph.CSR, len(list)) // rows are vertices of the kind, neighbours repeat as edges do
	for i, c := range list {
		from, offsets := r.kindOf(c.Name), make([]int64, k.ids.len()+2)
		r.eachNeighbour(kind, from, func(v, _ uint32) { offsets[v+2]++ })
		for v := range k.ids.len() {
			offsets[v+2] += offsets[v+1]
		}
		cols := make([]uint32, offsets[k.ids.len()+1])
		r.eachNeighbour(kind, from, func(v, u uint32) {
			cols[offsets[v+1]] = u
			offsets[v+1]++
		})
		neighbours[i] = graph.CSR{Offsets: offsets[:k.ids.len()+1], Cols: cols}
	}
	last := list[len(list)-1]
	sums := make([]float64, last.First+last.Width)
	var touched []uint32
	return k.eachID(len(sums), func(v int, row *featureRows) {
		for i, c := range list {
			x, near := blocks[r.kindOf(c.Name)].Sparse, neighbours[i].Row(v)
			touched = touched[:0]
			for _, u := range near {
				for j := x.Offsets[u] + 1; j < x.Offsets[u+1]; j++ { // after the indicator
					if sums[x.Cols[j]] == 0 {
						touched = append(touched, x.Cols[j])
					}
					sums[x.Cols[j]] += float64(x.Vals[j])
				}
			}
			slices.Sort(touched)
			for _, col := range slices.Compact(touched) {
				row.put(c.First+int(col)-1, sums[col]/float64(len(near)))
				sums[col] = 0
			}
		}
	})
}
