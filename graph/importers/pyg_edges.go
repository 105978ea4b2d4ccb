package importers

import (
	"slices"

	"siafu/graph"
)

// pygEdgeArrays lists the arrays of edges that --edge-features may name.
var pygEdgeArrays = []string{"edge_weight", "edge_attr"}

// pygEdgeData adds the file's edge data: weights, and the features of an edge_attr of several
// columns, or of the array that --edge-features names.
func pygEdgeData(k *keeper, o Options, in namedArrays, ends endRows) graph.EdgeSource {
	name := pygFeatures(o, in)
	weights := pygWeights(o, in, len(ends.src), name)
	var edges graph.EdgeSource = ends
	if weights != nil { // edges of weight 0 are omitted
		edges = graph.EachWeight(func(yield func(src, dst uint32, weight float32) error) error {
			for i, w := range weights {
				if w == 0 {
					continue
				}
				if err := yield(ends.src[i], ends.dst[i], w); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if name == "" {
		return edges
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
	return graph.WithFeatures(edges, dim, func(yield func(src, dst uint32, weight float32, features []float32) error) error {
		for i, u := range ends.src {
			w := float32(1)
			if weights != nil {
				w = weights[i]
			}
			if w == 0 {
				continue
			}
			if err := yield(u, ends.dst[i], w, features[i*dim:][:dim]); err != nil {
				return err
			}
		}
		return nil
	})
}

// pygFeatures returns the name of the array of edge features, "" if there is none: the one
// that --edge-features names, else an edge_attr of several columns.
func pygFeatures(o Options, in namedArrays) string {
	at := place{"import", o.Src}
	switch len(o.EdgeFeatures) {
	case 0:
	case 1:
		name := o.EdgeFeatures[0]
		at.require(in.has(name), "leave --edge-features out, or give each edge a row of "+name,
			"there is no %s, which --edge-features names", name)
		return name
	default:
		at.refuse("name one, with a column for each feature", "--edge-features names %d arrays", len(o.EdgeFeatures))
	}
	if !in.has("edge_attr") {
		return ""
	}
	switch a := in.get("edge_attr"); {
	case len(a.Shape) < 2 || len(a.Shape) == 2 && a.Shape[1] == 1:
		if in.has("edge_weight") {
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
		if !in.has(name) || name == features {
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
			a.require(a.Shape[1] <= 1, "rename it edge_attr if it holds edge features", "it has %d columns, but an edge has one weight", a.Shape[1])
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
			o.Log("weights=edge_attr path=%s one column is read as the weight; import it as a feature with --edge-features edge_attr", a.path)
		}
		return weights
	}
	return nil
}
