package importers

import (
	"slices"

	"siafu/graph"
	"siafu/internal/fault"
)

// pygEdgeArrays lists the arrays of edges that --edge-features may name.
var pygEdgeArrays = []string{"edge_weight", "edge_attr"}

// pygEdgeData adds the file's edge data: weights, and the features of an edge_attr of several
// columns, or of the array that --edge-features names.
func pygEdgeData(k *keeper, o Options, in namedArrays, ends endRows) (graph.EdgeSource, error) {
	name, err := pygFeatures(o, in)
	if err != nil {
		return nil, err
	}
	edges, err := pygWeights(o, in, ends, name)
	if err != nil || name == "" {
		return edges, err
	}
	a := in.get(name)
	if a.err != nil {
		return nil, a.err
	}
	dim := 1
	if len(a.Shape) == 2 {
		dim = a.Shape[1]
	}
	if len(a.Shape) != 1 && len(a.Shape) != 2 || a.Shape[0] != len(ends.src) || dim == 0 {
		return nil, a.bad("edge features have shape %v, expected %d rows", a.Shape, len(ends.src)).Then("give each edge a row")
	}
	features, err := a.float32s(k)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(features, graph.NotFinite); i >= 0 {
		return nil, a.bad("feature %d of edge %d is %v", i%dim, i/dim, features[i]).Then("replace it with a finite number, or leave features out with --drop-edge-features")
	}
	o.Log("edge_features=%d path=%s", dim, a.path)
	weights, _ := edges.(weightedRows)
	return graph.WithFeatures(edges, dim, func(yield func(src, dst uint32, weight float32, features []float32) error) error {
		for i, u := range ends.src {
			w := float32(1)
			if weights.weights != nil {
				w = weights.weights[i]
			}
			if w == 0 {
				continue
			}
			if err := yield(u, ends.dst[i], w, features[i*dim:][:dim]); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

// pygFeatures returns the name of the array of edge features, "" if there is none: the one
// that --edge-features names, else an edge_attr of several columns.
func pygFeatures(o Options, in namedArrays) (string, error) {
	switch len(o.EdgeFeatures) {
	case 0:
	case 1:
		name := o.EdgeFeatures[0]
		if !in.has(name) {
			return "", fault.New(fault.Data, "import", o.Src, "there is no %s, which --edge-features names", name).Then("leave --edge-features out, or give each edge a row of %s", name)
		}
		return name, nil
	default:
		return "", fault.New(fault.Usage, "import", o.Src, "--edge-features names %d arrays", len(o.EdgeFeatures)).Then("name one, with a column for each feature")
	}
	if !in.has("edge_attr") {
		return "", nil
	}
	a := in.get("edge_attr")
	switch {
	case a.err != nil:
		return "", a.err
	case len(a.Shape) < 2 || len(a.Shape) == 2 && a.Shape[1] == 1:
		if in.has("edge_weight") {
			o.Log("warning: path=%s edge_attr is ignored because edge_weight exists; import it with --edge-features edge_attr", o.Src)
		}
		return "", nil // weights, if any
	case o.DropEdgeFeatures:
		o.Log("warning: path=%s edge_attr is dropped", o.Src)
		return "", nil
	}
	return "edge_attr", nil
}

// pygWeights adds the weights of edge_weight, else of an edge_attr of one column, unless that
// is the features; none if all are 1.
func pygWeights(o Options, in namedArrays, edges endRows, features string) (graph.EdgeSource, error) {
	for _, name := range pygEdgeArrays {
		if !in.has(name) || name == features {
			continue
		}
		a := in.get(name)
		if a.err == nil && name == "edge_attr" && len(a.Shape) > 1 && a.Shape[1] != 1 {
			if features != "" {
				o.Log("warning: path=%s %s is left out: --edge-features names %s", o.Src, name, features)
			}
			continue // no weights
		}
		if a.err == nil && len(a.Shape) == 2 && a.Shape[1] > 1 {
			return nil, a.bad("it has %d columns, but an edge has one weight", a.Shape[1]).Then("rename it edge_attr if it holds edge features")
		}
		weights, err := a.edgeWeights(len(edges.src))
		switch {
		case err != nil:
			return nil, err
		case weights == nil:
			return edges, nil
		case o.DropWeights:
			o.Log("warning: path=%s %s is dropped", o.Src, name)
			return edges, nil
		}
		if name == "edge_attr" {
			o.Log("weights=edge_attr path=%s one column is read as the weight; import it as a feature with --edge-features edge_attr", a.path)
		}
		return weightedRows{edges, weights}, nil
	}
	return edges, nil
}
