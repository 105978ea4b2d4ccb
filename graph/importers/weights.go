package importers

import (
	"math"
	"slices"

	"siafu/graph"
)

// weightedEdges stores edges, and weights once one is not 1. Edges of weight 0 are omitted.
type weightedEdges struct {
	edgeBuffer
	weights  *chunks[float32] // nil: all are 1
	dim      int              // features of an edge
	features *chunks[float32]
}

func newWeightedEdges(k *resources, at input) *weightedEdges {
	return &weightedEdges{edgeBuffer: newEdgeBuffer(k, at), features: &chunks[float32]{resources: k, input: at}}
}

// put appends an edge.
func (e *weightedEdges) put(pair [2]uint32, weight float32) error {
	if weight != 1 && e.weights == nil {
		e.weights = &chunks[float32]{resources: e.resources, input: e.input}
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

// source returns the edges as a graph.WeightedSource if they have weights, or as a
// graph.FeaturedSource if they have features.
func (e *weightedEdges) source() graph.EdgeSource {
	var edges graph.EdgeSource = e.edgeBuffer
	if e.weights != nil {
		edges = graph.EachWeight(func(yield func(src, dst uint32, weight float32) error) error {
			weights, w := cursor[float32]{chunks: e.weights}, make([]float32, 1)
			return e.edgeBuffer.Each(func(src, dst uint32) error {
				if weights.fill(w); w[0] == 0 {
					return nil
				}
				return yield(src, dst, w[0])
			})
		})
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
	return e.edgeBuffer.Each(func(src, dst uint32) error {
		features.fill(row)
		if e.weights != nil {
			weights.fill(weight)
		}
		if weight[0] == 0 {
			return nil
		}
		return yield(src, dst, weight[0], row)
	})
}

// edgeWeights returns the weights of the given number of edges, nil if all are 1.
func (a ndarray) edgeWeights(edges int) []float32 {
	weights := must(a.Float32s())
	a.require(len(weights) == edges, "give each edge one weight", "there are %d weights for %d edges", len(weights), edges)
	checkWeights(a.input, weights, "")
	if !slices.ContainsFunc(weights, func(w float32) bool { return w != 1 }) {
		return nil
	}
	return weights
}

// checkWeights refuses weights that are negative or not finite. remedy is added to the message.
func checkWeights(at input, weights []float32, remedy string) {
	for i, w := range weights {
		if !(w >= 0 && w <= math.MaxFloat32) {
			at.require(false, "give edges finite weights of 0 or more"+remedy, "the weight of edge %d is %v", i, w)
		}
	}
}
