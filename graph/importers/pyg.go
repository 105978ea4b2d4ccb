package importers

import (
	"strings"

	"siafu/graph"
	"siafu/internal/fault"
	"siafu/internal/npy"
)

// namedArrays gives the arrays of a file by name.
type namedArrays interface {
	has(name string) bool
	get(name string) ndarray
	// words returns the texts of an array, or numbers as texts.
	words(name string) ([]string, error)
}

// pyg makes a dataset of arrays with the names of PyTorch Geometric's Data: edge_index [2 x
// edges], x [n x features]; and, optionally, edge_weight or edge_attr [edges], edge_attr
// [edges x features], y [n], train_mask, val_mask and test_mask [n] or [n x splits],
// num_nodes, ids [n] of any type.
func pyg(k *keeper, o Options, op string, in namedArrays) (*graph.Content, error) {
	x := in.get("x")
	if x.err == nil && len(x.Shape) != 2 {
		return nil, x.bad("features have shape %v, expected [vertices columns]", x.Shape)
	}
	if x.err != nil {
		return nil, x.err
	}
	n := int64(x.Shape[0])
	c := &graph.Content{Vertices: n}
	if err := checkVertices(op, x.path, n); err != nil {
		return nil, err
	}
	var err error
	if c.Features, err = x.dense(k, n); err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error { return pygCount(in, n) },
		func() error { return pygEdges(k, o, in, c) },
		func() error { return pygLabels(o, in, c) },
		func() error { return pygSplit(o, op, in, c) },
		func() error { return pygIDs(in, c) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// pygCount compares num_nodes with the rows of x.
func pygCount(in namedArrays, n int64) error {
	if !in.has("num_nodes") {
		return nil
	}
	a := in.get("num_nodes")
	count, err := elements(a, (*npy.Array).Int64s)
	if err == nil && (len(count) != 1 || count[0] != n) {
		err = a.bad("it is %v, but x has %d rows", count, n).Then("give each vertex a row of x")
	}
	return err
}

// pygEdges reads edge_index, whose first row are sources.
func pygEdges(k *keeper, o Options, in namedArrays, c *graph.Content) error {
	a := in.get("edge_index")
	switch {
	case a.err != nil:
		return a.err
	case len(a.Shape) != 2 || a.Shape[0] != 2:
		return a.bad("shape is %v, expected [2 edges]", a.Shape).Then("save a row of sources and a row of destinations: transpose an array of pairs")
	}
	ends, err := elements(a, (*npy.Array).Uint32s)
	if err != nil {
		return err
	}
	m := len(ends) / 2
	for i, v := range ends {
		if int64(v) >= c.Vertices {
			return badEdge(a.op, a.path, int64(i%m), i/m, int64(v), c.Vertices)
		}
	}
	c.Edges, err = pygEdgeData(k, o, in, endRows{ends[:m], ends[m:]})
	return err
}

// endRows has edges with separate lists of sources and destinations.
type endRows struct{ src, dst []uint32 }

// Each implements graph.EdgeSource.
func (e endRows) Each(yield func(src, dst uint32) error) error {
	for i, u := range e.src {
		if err := yield(u, e.dst[i]); err != nil {
			return err
		}
	}
	return nil
}

// pygLabels reads the optional y.
func pygLabels(o Options, in namedArrays, c *graph.Content) error {
	if !in.has("y") {
		c.Labels = unlabelled(c.Vertices)
		return nil
	}
	return in.get("y").setLabels(o, c)
}

// pygSplit reads the masks, of several splits the one that --split names. Without masks it
// makes a random split.
func pygSplit(o Options, op string, in namedArrays, c *graph.Content) (err error) {
	names := [...]string{graph.SplitTrain: "train_mask", graph.SplitVal: "val_mask", graph.SplitTest: "test_mask"}
	if !in.has(names[graph.SplitTrain]) {
		if err := noChoice(op, o, "the file has no splits; --seed selects a random split"); err != nil {
			return err
		}
		if !in.has("y") {
			c.Split = make([]uint8, c.Vertices)
			return nil
		}
		c.Split, err = o.draw(c.Labels, usual)
		return err
	}
	column, err := maskNumber(o, op)
	if err != nil {
		return err
	}
	s := newSplitter(op, int(c.Vertices))
	for set, name := range names {
		if set == graph.SplitNone || !in.has(name) {
			continue
		}
		if err := in.get(name).maskColumn(s, column, uint8(set)); err != nil {
			return err
		}
	}
	c.Split = s.split
	return nil
}

// maskColumn marks the vertices of a mask [n], or of one column of [n x splits].
func (a ndarray) maskColumn(s *splitter, column int, set uint8) error {
	n, columns := len(s.split), 1
	if a.err == nil && len(a.Shape) == 2 {
		if columns = a.Shape[1]; columns == 0 {
			return a.bad("masks have shape %v", a.Shape)
		} else if column >= columns {
			return fault.New(fault.Usage, a.op, a.path, "there is no mask %d, the file has %d", column, columns).
				Then("choose --split from 0 to %d", columns-1)
		}
	}
	shape := []int{n, columns}
	if a.err == nil && len(a.Shape) == 1 {
		shape, column = shape[:1], 0
	}
	mask, err := a.integers(shape...)
	if err != nil {
		return err
	}
	for v := range n {
		if mask[v*columns+column] == 0 {
			continue
		}
		if err := s.mark(a.path, v, int64(v), set); err != nil {
			return err
		}
	}
	return nil
}

// pygIDs reads the ids of the vertices, if the file has some.
func pygIDs(in namedArrays, c *graph.Content) error {
	const name = "ids"
	if !in.has(name) {
		return nil
	}
	a := in.get(name)
	list, err := in.words(name)
	if err != nil {
		return err
	}
	if int64(len(list)) != c.Vertices {
		return a.bad("there are %d ids for %d vertices", len(list), c.Vertices).Then("give one id for each vertex")
	}
	x := newIDIndex()
	for v, id := range list {
		switch before, fresh := x.add([]byte(id)); {
		case !fresh:
			return a.bad("id %d is %.60q, the same as id %d", v, id, before).Then("give each vertex a unique id")
		case id == "" || strings.ContainsAny(id, "\r\n"):
			return a.bad("id %d is %.60q", v, id).Then("write ids without control characters")
		}
	}
	c.IDs = x.ids()
	return nil
}
