package importers

import (
	"slices"
	"strings"

	"siafu/graph"
)

type namedArrays interface {
	Has(name string) bool
	get(name string) ndarray
}

// pyg makes a dataset of arrays with the names of PyTorch Geometric's Data: edge_index [2 x
// edges], x [n x features]; and, optionally, edge_weight or edge_attr [edges], edge_attr
// [edges x features], y [n], train_mask, val_mask and test_mask [n] or [n x splits],
// num_nodes, ids [n] of any type.
func pyg(k *resources, o Options, in namedArrays) *graph.Content {
	x := in.get("x")
	n := x.rows()
	c := &graph.Content{Vertices: n, Features: x.dense(k, n)}
	if in.Has("num_nodes") {
		a := in.get("num_nodes")
		count := must(a.Int64s())
		a.require(len(count) == 1 && count[0] == n, "give each vertex a row of x", "it is %v, but x has %d rows", count, n)
	}
	c.Edges = pygEdges(k, o, in, n)
	if in.Has("y") {
		in.get("y").setLabels(o, c)
	} else {
		c.Labels = unlabelled(n)
	}
	c.Split = pygSplit(k, o, in, c.Labels)
	if in.Has("ids") {
		c.IDs = pygIDs(in, n)
	}
	return c
}

// pygEdges reads edge_index and the data of edges.
func pygEdges(k *resources, o Options, in namedArrays, n int64) graph.EdgeSource {
	ends := pygEnds(in)
	ends.check(in.get("edge_index").input, n, n)
	return pygEdgeData(k, o, in, ends)
}

// pygEnds reads edge_index, a row of sources and a row of destinations.
func pygEnds(in namedArrays) endRows {
	a := in.get("edge_index")
	a.require(len(a.Shape) == 2 && a.Shape[0] == 2, "save a row of sources and a row of destinations: transpose an array of pairs",
		"shape is %v, expected [2 edges]", a.Shape)
	ends := must(a.Uint32s())
	m := len(ends) / 2
	return endRows{ends[:m], ends[m:]}
}

// check compares the ends with the numbers of vertices of sources and of destinations.
func (e endRows) check(at input, from, to int64) {
	for end, list := range [][]uint32{e.src, e.dst} {
		n := [2]int64{from, to}[end]
		for i, v := range list {
			if int64(v) >= n {
				check(badEdge(at, int64(i), end, int64(v), n))
			}
		}
	}
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
func pygSplit(k *resources, o Options, in namedArrays, labels []int32) []uint8 {
	if !in.Has("train_mask") {
		k.noChoice(o, "the file has no splits; --seed selects a random split")
		if !in.Has("y") {
			return make([]uint8, len(labels))
		}
		return o.draw(labels, usual)
	}
	column, s := k.maskNumber(o), make(splitter, len(labels))
	for i, name := range []string{"train_mask", "val_mask", "test_mask"} {
		if in.Has(name) {
			a := in.get(name)
			s.markMask(a.input, a.maskColumn(len(labels), column), uint8(graph.SplitTrain+i))
		}
	}
	return s
}

// maskColumn returns a mask [n], or one column of [n x splits].
func (a ndarray) maskColumn(n, column int) []int64 {
	a.require(len(a.Shape) > 0 && a.Shape[0] == n, indexMask, "the mask has shape %v for %d vertices", a.Shape, n)
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

func pygIDs(in namedArrays, n int64) *graph.IDs {
	a, x := in.get("ids"), newIDIndex()
	list := a.words()
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

// pygEdgeArrays lists the arrays of edges that --edge-features may name.
var pygEdgeArrays = []string{"edge_weight", "edge_attr"}

// pygEdgeData adds the file's edge data: weights, and the features of an edge_attr of several
// columns, or of the array that --edge-features names.
func pygEdgeData(k *resources, o Options, in namedArrays, ends endRows) graph.EdgeSource {
	name := pygFeatures(k.input, o, in)
	data := edgeData{edges: ends}
	if weights := pygWeights(o, in, len(ends.src), name); weights != nil {
		data.weights = oneChunk(weights)
	}
	if name == "" {
		return data.source()
	}
	a, dim := in.get(name), 1
	if len(a.Shape) == 2 {
		dim = a.Shape[1]
	}
	a.require((len(a.Shape) == 1 || len(a.Shape) == 2) && a.Shape[0] == len(ends.src) && dim > 0, "give each edge a row",
		"edge features have shape %v, expected %d rows", a.Shape, len(ends.src))
	features := a.float32s(k)
	if i := slices.IndexFunc(features, graph.NotFinite); i >= 0 {
		a.require(false, "replace it with a finite number, or leave features out with --drop-edge-features",
			"feature %d of edge %d is %v", i%dim, i/dim, features[i])
	}
	o.Log("edge_features=%d path=%s", dim, a.path)
	data.features, data.dim = oneChunk(features), dim
	return data.source()
}

// pygFeatures returns the name of the array of edge features, "" if there is none: the one
// that --edge-features names, else an edge_attr of several columns.
func pygFeatures(at input, o Options, in namedArrays) string {
	switch len(o.EdgeFeatures) {
	case 0:
	case 1:
		name := o.EdgeFeatures[0]
		at.require(in.Has(name), "leave --edge-features out, or give each edge a row of "+name,
			"there is no %s, which --edge-features names", name)
		return name
	default:
		at.refuse("name one, with a column for each feature", "--edge-features names %d arrays", len(o.EdgeFeatures))
	}
	if !in.Has("edge_attr") {
		return ""
	}
	switch a := in.get("edge_attr"); {
	case len(a.Shape) < 2 || len(a.Shape) == 2 && a.Shape[1] == 1:
		if in.Has("edge_weight") {
			o.Log("warning: path=%s edge_attr is ignored because edge_weight exists; import it with --edge-features edge_attr", o.Src)
		}
		return "" // weights, if any
	case o.DropEdgeFeatures:
		o.Log("warning: path=%s edge_attr is dropped", o.Src)
		return ""
	}
	return "edge_attr"
}

// pygWeights returns the weights of edge_weight, else of an edge_attr of one column, unless that
// is the features; nil if all are 1.
func pygWeights(o Options, in namedArrays, edges int, features string) []float32 {
	for _, name := range pygEdgeArrays {
		if !in.Has(name) || name == features {
			continue
		}
		a := in.get(name)
		if name == "edge_attr" && len(a.Shape) > 1 && a.Shape[1] != 1 {
			if features != "" {
				o.Log("warning: path=%s %s is left out: --edge-features names %s", o.Src, name, features)
			}
			continue // no weights
		}
		if len(a.Shape) == 2 {
			a.require(a.Shape[1] <= 1, "rename it edge_attr if it holds edge features",
				"it has %d columns, but an edge has one weight", a.Shape[1])
		}
		if name == "edge_attr" && !o.DropWeights {
			a.checkKinds()
		}
		weights := a.edgeWeights(edges)
		switch {
		case weights == nil:
			return nil
		case o.DropWeights:
			o.Log("warning: path=%s %s is dropped", o.Src, name)
			return nil
		}
		if name == "edge_attr" {
			o.Log("weights=edge_attr path=%s one column is read as the weight; import it as a feature with "+
				"--edge-features edge_attr", a.path)
		}
		return weights
	}
	return nil
}
