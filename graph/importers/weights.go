package importers

import (
	"math"
	"slices"

	"siafu/graph"
	"siafu/graph/npy"
)

// weightedEdges are edges that have weights from the first one on that is not 1.
type weightedEdges struct {
	edgeBuffer
	weights  *chunks[float32] // nil: all are 1
	dim      int              // features of an edge
	features *chunks[float32]
}

func newWeightedEdges(k *keeper, op, path string) *weightedEdges {
	return &weightedEdges{edgeBuffer: newEdgeBuffer(k, op, path), features: &chunks[float32]{keep: k, op: op, path: path}}
}

// put appends an edge.
func (e *weightedEdges) put(pair [2]uint32, weight float32) error {
	if weight != 1 && e.weights == nil {
		e.weights = &chunks[float32]{keep: e.keep, op: e.op, path: e.path}
		for range e.pairs {
			if err := e.weights.add([]float32{1}); err != nil {
				return err
			}
		}
	}
	if e.weights != nil {
		if err := e.weights.add([]float32{weight}); err != nil {
			return err
		}
	}
	return e.add(pair[:])
}

// source is the edges, a graph.WeightedSource where they have weights, and one with features
// where they have some.
func (e *weightedEdges) source() graph.EdgeSource {
	var edges graph.EdgeSource = e
	if e.weights == nil {
		edges = e.edgeBuffer
	}
	if e.dim == 0 {
		return edges
	}
	return graph.WithFeatures(edges, e.dim, e.eachFeatures)
}

// eachFeatures is graph.FeaturedSource.EachFeatures.
func (e *weightedEdges) eachFeatures(yield func(src, dst uint32, weight float32, features []float32) error) error {
	row, weight := make([]float32, e.dim), []float32{1}
	features, weights := cursor[float32]{chunks: e.features}, cursor[float32]{chunks: e.weights}
	return e.Each(func(src, dst uint32) error {
		features.fill(row)
		if e.weights != nil {
			weights.fill(weight)
		}
		return yield(src, dst, weight[0], row)
	})
}

// EachWeight implements graph.WeightedSource.
func (e *weightedEdges) EachWeight(yield func(src, dst uint32, weight float32) error) error {
	weights, w := cursor[float32]{chunks: e.weights}, make([]float32, 1)
	return e.Each(func(src, dst uint32) error {
		weights.fill(w)
		return yield(src, dst, w[0])
	})
}

// weightedRows are endRows with weights. Edges of weight 0 are none.
type weightedRows struct {
	endRows
	weights []float32
}

// Each implements graph.EdgeSource.
func (e weightedRows) Each(yield func(src, dst uint32) error) error {
	return e.EachWeight(func(src, dst uint32, _ float32) error { return yield(src, dst) })
}

// EachWeight implements graph.WeightedSource.
func (e weightedRows) EachWeight(yield func(src, dst uint32, weight float32) error) error {
	for i, w := range e.weights {
		if w == 0 {
			continue
		}
		if err := yield(e.src[i], e.dst[i], w); err != nil {
			return err
		}
	}
	return nil
}

// pygEdgeData gives edges what the file has of them: weights, and the features of an edge_attr
// of several columns.
func pygEdgeData(k *keeper, o Options, in namedArrays, ends endRows) (graph.EdgeSource, error) {
	edges, err := pygWeights(o, in, ends)
	if err != nil || !in.has("edge_attr") {
		return edges, err
	}
	a := in.get("edge_attr")
	switch {
	case a.err != nil:
		return nil, a.err
	case len(a.Shape) < 2 || len(a.Shape) == 2 && a.Shape[1] == 1:
		return edges, nil // weights, if any
	case len(a.Shape) != 2 || a.Shape[0] != len(ends.src) || a.Shape[1] == 0:
		return nil, a.bad("features of edges have shape %v, expected are %d rows", a.Shape, len(ends.src)).Then("give each edge a row")
	case o.DropEdgeFeatures:
		o.Log("warning: path=%s edge_attr is dropped", o.Src)
		return edges, nil
	}
	features, err := a.float32s(k)
	if err != nil {
		return nil, err
	}
	dim := a.Shape[1]
	if i := slices.IndexFunc(features, graph.NotFinite); i >= 0 {
		return nil, a.bad("feature %d of edge %d is %v", i%dim, i/dim, features[i]).Then("replace it by a number, or leave features out with --drop-edge-features")
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

// pygWeights gives edges the weights of edge_weight, else of an edge_attr of one column;
// none where all are 1.
func pygWeights(o Options, in namedArrays, edges endRows) (graph.EdgeSource, error) {
	for _, name := range []string{"edge_weight", "edge_attr"} {
		if !in.has(name) {
			continue
		}
		a := in.get(name)
		if a.err == nil && name == "edge_attr" && len(a.Shape) > 1 && a.Shape[1] != 1 {
			continue // they are features
		}
		if a.err == nil && len(a.Shape) == 2 && a.Shape[1] > 1 {
			return nil, a.bad("it has %d columns, and an edge has one weight", a.Shape[1]).Then("call it edge_attr where these are features of edges")
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
		return weightedRows{edges, weights}, nil
	}
	return edges, nil
}

// edgeWeights are those of so many edges, nil where all are 1.
func (a ndarray) edgeWeights(edges int) ([]float32, error) {
	weights, err := elements(a, (*npy.Array).Float32s)
	if err != nil {
		return nil, err
	}
	if len(weights) != edges {
		return nil, a.bad("there are %d weights for %d edges", len(weights), edges).Then("give each edge one")
	}
	plain := true
	for i, w := range weights {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return nil, a.bad("the weight of edge %d is %v", i, w).Then("give edges finite weights of 0 or more")
		}
		plain = plain && w == 1
	}
	if plain {
		return nil, nil
	}
	return weights, nil
}
