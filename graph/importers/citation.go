package importers

import (
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/pickle"
)

// agree compares the sizes of the files and derives the number of vertices.
func (d *citation) agree() error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Data, opPlanetoid, d.prefix+".*", format, args...).Then("take all files from one dataset")
	}
	switch {
	case d.x.rows != int64(len(d.y)) || d.allx.rows != int64(len(d.ally)) || d.tx.rows != int64(len(d.ty)):
		return bad("x, allx, tx have %d, %d, %d rows, but y, ally, ty %d, %d, %d", d.x.rows, d.allx.rows, d.tx.rows, len(d.y), len(d.ally), len(d.ty))
	case d.x.cols != d.allx.cols || d.tx.cols != d.allx.cols:
		return bad("x, allx, tx have %d, %d, %d columns", d.x.cols, d.allx.cols, d.tx.cols)
	case d.x.rows > d.allx.rows:
		return bad("x has %d rows, more than allx with %d", d.x.rows, d.allx.rows)
	case d.tx.rows != int64(len(d.test)):
		return bad("tx has %d rows, test.index %d lines", d.tx.rows, len(d.test))
	}
	d.vertices = d.allx.rows
	for i, v := range d.test {
		if v < d.allx.rows {
			return fault.New(fault.Data, opPlanetoid, d.prefix+".test.index", "line %d: vertex %d is one of the %d that allx describes", i+1, v, d.allx.rows)
		}
		d.vertices = max(d.vertices, v+1)
	}
	// A gap takes memory that no file justifies. citeseer has a gap of 15.
	if gaps := d.vertices - d.allx.rows - d.tx.rows; gaps > d.allx.rows+d.tx.rows {
		return fault.New(fault.Data, opPlanetoid, d.prefix+".test.index", "vertex %d is the largest, but only %d have features", d.vertices-1, d.allx.rows+d.tx.rows)
	}
	return checkVertices(opPlanetoid, d.prefix+".test.index", d.vertices)
}

// testRows returns the row of tx and ty of each vertex after those of allx, -1 for
// a gap.
func (d *citation) testRows() ([]int, error) {
	rows := slices.Repeat([]int{-1}, int(d.vertices-d.allx.rows))
	for i, v := range d.test {
		if at := &rows[v-d.allx.rows]; *at < 0 {
			*at = i
			continue
		}
		return nil, fault.New(fault.Data, opPlanetoid, d.prefix+".test.index", "line %d: vertex %d occurs twice", i+1, v)
	}
	return rows, nil
}

// features returns the rows of allx, then those of tx in the order of their vertices.
func (d *citation) features() (*graph.SparseRows, error) {
	s, err := d.allx.sparseRows()
	if err != nil {
		return nil, err
	}
	t, err := d.tx.sparseRows()
	if err != nil {
		return nil, err
	}
	rows, err := d.testRows()
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if r >= 0 {
			s.Cols = append(s.Cols, t.Cols[t.Offsets[r]:t.Offsets[r+1]]...)
			s.Vals = append(s.Vals, t.Vals[t.Offsets[r]:t.Offsets[r+1]]...)
		}
		s.Offsets = append(s.Offsets, int64(len(s.Cols)))
	}
	return s, nil
}

// labels returns the classes of the one-hot rows, none for a row of zeros.
func (d *citation) labels() ([]int32, error) {
	rows, err := d.testRows()
	if err != nil {
		return nil, err
	}
	labels := make([]int32, 0, d.vertices)
	for i, row := range d.ally {
		l, err := d.class(".ally", i, row)
		if err != nil {
			return nil, err
		}
		labels = append(labels, l)
	}
	for _, r := range rows {
		l := graph.Unlabelled
		if r >= 0 {
			if l, err = d.class(".ty", r, d.ty[r]); err != nil {
				return nil, err
			}
		}
		labels = append(labels, l)
	}
	return labels, nil
}

// class returns the index of the one in a row.
func (d *citation) class(ext string, at int, row []int64) (int32, error) {
	l := graph.Unlabelled
	for i, v := range row {
		switch {
		case v == 0:
		case v != 1:
			return 0, fault.New(fault.Data, opPlanetoid, d.prefix+ext, "row %d column %d is %d, expected 0 or 1", at, i, v)
		case l != graph.Unlabelled:
			return 0, multiLabel(opPlanetoid, d.prefix+ext, "row %d has the labels %d and %d", at, l, i)
		default:
			l = int32(i)
		}
	}
	return l, nil
}

// split returns the public split.
func (d *citation) split(o Options) ([]uint8, error) {
	s := newSplitter(opPlanetoid, int(d.vertices))
	train := int64(len(d.y))
	val := min(planetoidVal, d.allx.rows-train)
	if val < planetoidVal {
		o.Log("path=%s.allx validation=%d, fewer than the usual %d", d.prefix, val, planetoidVal)
	}
	for v := range train + val {
		set := uint8(graph.SplitTrain)
		if v >= train {
			set = graph.SplitVal
		}
		s.split[v] = set
	}
	return s.split, s.markAll(d.prefix+".test.index", d.test, graph.SplitTest)
}

// edges reads the graph, a dict from each vertex to a list of its neighbours.
func (d *citation) edges(k *keeper) (graph.EdgeSource, error) {
	path := d.prefix + ".graph"
	v, err := d.pickle(".graph")
	if err != nil {
		return nil, err
	}
	var items *pickle.Dict
	switch g := v.(type) {
	case *pickle.Dict:
		items = g
	case *pickle.Object:
		if g.Class == "collections defaultdict" {
			items = &g.Items
		}
	}
	if items == nil {
		return nil, fault.New(fault.Data, opPlanetoid, path, "%s is not a dict of neighbours", pickle.Describe(v))
	}
	out := newEdgeBuffer(k, opPlanetoid, path)
	of := map[*pickle.List]any{}
	for i, key := range items.Keys {
		// A pickle can repeat a list of any length in two bytes.
		if list, ok := items.Values[i].(*pickle.List); ok {
			if other, shared := of[list]; shared {
				return nil, fault.New(fault.Data, opPlanetoid, path, "vertices %s and %s share one list object of neighbours", pickle.Describe(other), pickle.Describe(key))
			}
			of[list] = key
		}
		if err := d.neighbours(out, key, items.Values[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// neighbours adds the edges of one vertex.
func (d *citation) neighbours(out edgeBuffer, key, value any) error {
	src, ok := key.(int64)
	list, ok2 := value.(*pickle.List)
	if !ok || !ok2 {
		return fault.New(fault.Data, opPlanetoid, out.path, "the neighbours of %s are %s, expected a list", pickle.Describe(key), pickle.Describe(value))
	}
	for i, item := range list.Items {
		dst, ok := item.(int64)
		if !ok {
			return fault.New(fault.Data, opPlanetoid, out.path, "neighbour %d of vertex %d is %s", i, src, pickle.Describe(item))
		}
		for end, v := range [2]int64{src, dst} {
			if v < 0 || v >= d.vertices {
				return badEdge(opPlanetoid, out.path, out.pairs, end, v, d.vertices)
			}
		}
		if err := out.add([]uint32{uint32(src), uint32(dst)}); err != nil {
			return err
		}
	}
	return nil
}
