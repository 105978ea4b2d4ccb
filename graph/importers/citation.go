package importers

import (
	"slices"

	"siafu/graph"
	"siafu/internal/pickle"
)

// agree compares the sizes of the files and derives the number of vertices.
func (d *citation) agree() {
	all := func(ok bool, format string, args ...any) {
		d.at(".*").require(ok, "take all files from one dataset", format, args...)
	}
	all(d.x.rows == int64(len(d.y)) && d.allx.rows == int64(len(d.ally)) && d.tx.rows == int64(len(d.ty)),
		"x, allx, tx have %d, %d, %d rows, but y, ally, ty %d, %d, %d", d.x.rows, d.allx.rows, d.tx.rows, len(d.y), len(d.ally), len(d.ty))
	all(d.x.cols == d.allx.cols && d.tx.cols == d.allx.cols, "x, allx, tx have %d, %d, %d columns", d.x.cols, d.allx.cols, d.tx.cols)
	all(d.x.rows <= d.allx.rows, "x has %d rows, more than allx with %d", d.x.rows, d.allx.rows)
	all(d.tx.rows == int64(len(d.test)), "tx has %d rows, test.index %d lines", d.tx.rows, len(d.test))
	at := d.at(".test.index")
	d.vertices = d.allx.rows
	for i, v := range d.test {
		at.require(v >= d.allx.rows, "", "line %d: vertex %d is one of the %d that allx describes", i+1, v, d.allx.rows)
		d.vertices = max(d.vertices, v+1)
	}
	// A gap takes memory that no file justifies. citeseer has a gap of 15.
	known := d.allx.rows + d.tx.rows
	at.require(d.vertices-known <= known, "", "vertex %d is the largest, but only %d have features", d.vertices-1, known)
	checkVertices(at, d.vertices)
}

// testRows returns the row of tx and ty of each vertex after the rows of allx, -1 for a gap.
func (d *citation) testRows() []int {
	rows := slices.Repeat([]int{-1}, int(d.vertices-d.allx.rows))
	for i, v := range d.test {
		row := &rows[v-d.allx.rows]
		d.at(".test.index").require(*row < 0, "", "line %d: vertex %d occurs twice", i+1, v)
		*row = i
	}
	return rows
}

// features returns the rows of allx, then the given rows of tx.
func (d *citation) features(rows []int) *graph.SparseRows {
	s, t := must(d.allx.sparseRows()), must(d.tx.sparseRows())
	for _, r := range rows {
		if r >= 0 {
			s.Cols = append(s.Cols, t.Cols[t.Offsets[r]:t.Offsets[r+1]]...)
			s.Vals = append(s.Vals, t.Vals[t.Offsets[r]:t.Offsets[r+1]]...)
		}
		s.Offsets = append(s.Offsets, int64(len(s.Cols)))
	}
	return s
}

// labels returns the classes of the one-hot rows of ally, then of the given rows of ty. A row of
// zeros has no class.
func (d *citation) labels(rows []int) []int32 {
	labels := make([]int32, 0, d.vertices)
	for i, row := range d.ally {
		labels = append(labels, class(d.at(".ally"), i, row))
	}
	for _, r := range rows {
		l := graph.Unlabelled
		if r >= 0 {
			l = class(d.at(".ty"), r, d.ty[r])
		}
		labels = append(labels, l)
	}
	return labels
}

// class returns the index of the one in row number i.
func class(at place, i int, row []int64) int32 {
	l := graph.Unlabelled
	for column, v := range row {
		if v == 0 {
			continue
		}
		at.require(v == 1, "", "row %d column %d is %d, expected 0 or 1", i, column, v)
		at.require(l == graph.Unlabelled, severalLabels, "row %d has the labels %d and %d", i, l, column)
		l = int32(column)
	}
	return l
}

// split returns the public split.
func (d *citation) split(o Options) []uint8 {
	s := newSplitter(d.vertices)
	train := int64(len(d.y))
	val := min(planetoidVal, d.allx.rows-train)
	if val < planetoidVal {
		o.Log("path=%s.allx validation=%d, fewer than the usual %d", d.prefix, val, planetoidVal)
	}
	for v := range train + val {
		s.split[v] = graph.SplitTrain
		if v >= train {
			s.split[v] = graph.SplitVal
		}
	}
	s.markAll(d.at(".test.index"), d.test, graph.SplitTest)
	return s.split
}

// edges reads the graph, a dict from each vertex to a list of its neighbours.
func (d *citation) edges(k *keeper) graph.EdgeSource {
	at, v := d.at(".graph"), d.pickle(".graph")
	items, _ := v.(*pickle.Dict)
	if o, ok := v.(*pickle.Object); ok && o.Class == "collections defaultdict" {
		items = &o.Items
	}
	at.require(items != nil, "", "%s is not a dict of neighbours", pickle.Describe(v))
	out := newEdgeBuffer(k, at)
	of := map[*pickle.List]any{}
	for i, key := range items.Keys {
		list, ok := items.Values[i].(*pickle.List)
		src, whole := key.(int64)
		at.require(ok && whole, "", "the neighbours of %s are %s, expected a list", pickle.Describe(key), pickle.Describe(items.Values[i]))
		// A pickle can repeat a list of any length in two bytes.
		other, shared := of[list]
		at.require(!shared, "", "vertices %s and %s share one list object of neighbours", pickle.Describe(other), pickle.Describe(key))
		of[list] = key
		for j, item := range list.Items {
			dst, whole := item.(int64)
			if !whole {
				check(at.bad("neighbour %d of vertex %d is %s", j, src, pickle.Describe(item)))
			}
			for end, v := range [2]int64{src, dst} {
				if v < 0 || v >= d.vertices {
					check(badEdge(at, out.pairs, end, v, d.vertices))
				}
			}
			check(out.add([]uint32{uint32(src), uint32(dst)}))
		}
	}
	return out
}
