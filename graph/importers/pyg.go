package importers

import (
	"strings"

	"siafu/graph"
)

// namedArrays gives the arrays of a file by name.
type namedArrays interface {
	has(name string) bool
	get(name string) ndarray
	// words returns the texts of an array, or numbers as texts.
	words(name string) []string
}

// pyg makes a dataset of arrays with the names of PyTorch Geometric's Data: edge_index [2 x
// edges], x [n x features]; and, optionally, edge_weight or edge_attr [edges], edge_attr
// [edges x features], y [n], train_mask, val_mask and test_mask [n] or [n x splits],
// num_nodes, ids [n] of any type.
func pyg(k *keeper, o Options, op string, in namedArrays) *graph.Content {
	x := in.get("x")
	n := x.rows()
	c := &graph.Content{Vertices: n, Features: x.dense(k, n)}
	if in.has("num_nodes") {
		a := in.get("num_nodes")
		count := must(a.Int64s())
		a.require(len(count) == 1 && count[0] == n, "give each vertex a row of x", "it is %v, but x has %d rows", count, n)
	}
	c.Edges = pygEdges(k, o, in, n)
	if in.has("y") {
		in.get("y").setLabels(o, c)
	} else {
		c.Labels = unlabelled(n)
	}
	c.Split = pygSplit(o, op, in, c.Labels)
	if in.has("ids") {
		c.IDs = pygIDs(in, n)
	}
	return c
}

// pygEdges reads edge_index, whose first row are sources, and the data of edges.
func pygEdges(k *keeper, o Options, in namedArrays, n int64) graph.EdgeSource {
	a := in.get("edge_index")
	a.require(len(a.Shape) == 2 && a.Shape[0] == 2, "save a row of sources and a row of destinations: transpose an array of pairs",
		"shape is %v, expected [2 edges]", a.Shape)
	ends := must(a.Uint32s())
	m := len(ends) / 2
	for i, v := range ends {
		if int64(v) >= n {
			check(badEdge(a.place, int64(i%m), i/m, int64(v), n))
		}
	}
	return pygEdgeData(k, o, in, endRows{ends[:m], ends[m:]})
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

// pygSplit reads the masks, of several splits the one that --split names. Without masks it
// makes a random split.
func pygSplit(o Options, op string, in namedArrays, labels []int32) []uint8 {
	if !in.has("train_mask") {
		noChoice(op, o, "the file has no splits; --seed selects a random split")
		if !in.has("y") {
			return make([]uint8, len(labels))
		}
		return o.draw(labels, usual)
	}
	column, s := maskNumber(o, op), newSplitter(int64(len(labels)))
	for i, name := range []string{"train_mask", "val_mask", "test_mask"} {
		if in.has(name) {
			a := in.get(name)
			s.markMask(a.place, a.maskColumn(len(labels), column), uint8(graph.SplitTrain+i))
		}
	}
	return s.split
}

// maskColumn returns a mask [n], or one column of [n x splits].
func (a ndarray) maskColumn(n, column int) []int64 {
	if len(a.Shape) != 2 {
		return a.integers(n)
	}
	columns := a.Shape[1]
	a.require(columns > 0, "", "masks have shape %v", a.Shape)
	a.hasMask(column, columns)
	all, mask := a.integers(n, columns), make([]int64, n)
	for v := range mask {
		mask[v] = all[v*columns+column]
	}
	return mask
}

// pygIDs reads the ids of the vertices.
func pygIDs(in namedArrays, n int64) *graph.IDs {
	a, list, x := in.get("ids"), in.words("ids"), newIDIndex()
	a.require(int64(len(list)) == n, "give one id for each vertex", "there are %d ids for %d vertices", len(list), n)
	for v, id := range list {
		switch before, fresh := x.add([]byte(id)); {
		case !fresh:
			a.require(false, "give each vertex a unique id", "id %d is %.60q, the same as id %d", v, id, before)
		case id == "" || strings.ContainsAny(id, "\r\n"):
			a.require(false, "write ids without control characters", "id %d is %.60q", v, id)
		}
	}
	return x.ids()
}
