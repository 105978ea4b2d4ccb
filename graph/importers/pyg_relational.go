package importers

import (
	"slices"

	"siafu/graph"
)

// relationArrays are the arrays of a relation.
type relationArrays struct {
	from, name, to string
	namedArrays
}

// kindArrays are the arrays of a kind of vertices.
type kindArrays struct {
	name string
	namedArrays
	sparse *matrix               // features; nil: they are dense or absent
	split  func(n int64) []uint8 // nil: masks, or a random split
}

// pygRelational makes a dataset of arrays with the names of PyTorch Geometric's HeteroData. Kinds have num_nodes, x, y,
// masks and ids, all optional; relations have edge_index.
func pygRelational(k *resources, o Options, kinds []kindArrays, relations []relationArrays) *graph.Content {
	refuseRelational(k.input, o)
	x := &relational{}
	ends, vertices := make([]endRows, len(relations)), map[string]int64{}
	for i, r := range relations {
		ends[i] = pygEnds(r)
		for name, list := range map[string][]uint32{r.from: ends[i].src, r.to: ends[i].dst} {
			if len(list) > 0 {
				vertices[name] = max(vertices[name], int64(slices.Max(list))+1)
			}
		}
	}
	for _, kind := range kinds {
		x.addKind(k.input, kind.name, pygKind(k, o, kind, vertices[kind.name]))
	}
	for i, r := range relations {
		x.addRelation(k.input, r.from, r.name, r.to, ends[i])
		at := r.get("edge_index").input
		added := x.of.Relations[i]
		ends[i].check(at, x.kinds[added.From].Vertices, x.kinds[added.To].Vertices)
		if r.Has("edge_weight") {
			r.get("edge_weight").dropEdgeData(o, "weights", "--drop-weights", o.DropWeights)
		}
		if r.Has("edge_attr") {
			r.get("edge_attr").dropEdgeData(o, "features", "--drop-edge-features", o.DropEdgeFeatures)
		}
	}
	return x.content(k, o)
}

// dropEdgeData ends the import unless a flag drops the data of edges in the file.
func (p input) dropEdgeData(o Options, what, flag string, dropped bool) {
	p.require(dropped, "leave them out with "+flag, "edges have %s, which is not supported in relational graphs", what)
	o.Log("path=%s is left out", p.path)
}

// pygKind reads the arrays of a kind. Without arrays, its number of vertices is that of the ids in edges.
func pygKind(k *resources, o Options, in kindArrays, vertices int64) *graph.Content {
	c := &graph.Content{Vertices: vertices}
	for _, name := range []string{"num_nodes", "x", "y", "train_mask", "ids"} {
		if !in.Has(name) {
			continue
		}
		a := in.get(name)
		if name == "num_nodes" {
			count := must(a.Int64s())
			a.require(len(count) == 1, "", "it has %d numbers, expected one", len(count))
			c.Vertices = count[0]
		} else {
			a.require(len(a.Shape) > 0, "give each vertex a row", "it has no rows")
			c.Vertices = int64(a.Shape[0])
		}
		checkVertices(a.input, c.Vertices)
		break
	}
	if in.sparse != nil {
		c.Features = in.sparse.features(c.Vertices)
	} else if in.Has("x") {
		c.Features = in.get("x").dense(k, c.Vertices)
	}
	if in.Has("y") {
		in.get("y").setLabels(o, c)
		if in.split != nil {
			c.Split = in.split(c.Vertices)
		} else {
			c.Split = pygSplit(k, o, in, c.Labels)
		}
	}
	if in.Has("ids") {
		c.IDs = pygIDs(in, c.Vertices)
	}
	return c
}
