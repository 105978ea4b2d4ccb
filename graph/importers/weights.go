package importers

import (
	"math"
	"slices"
	"strings"

	"siafu/graph"
)

// edgeData has the weights and features of edges. Edges of weight 0 are omitted.
type edgeData struct {
	edges    graph.EdgeSource
	weights  *chunks[float32] // nil: all are 1
	dim      int              // features of an edge
	features *chunks[float32]
}

// source returns the edges as a graph.WeightedSource if they have weights, and as a
// graph.FeaturedSource if they have features.
func (e *edgeData) source() graph.EdgeSource {
	edges := e.edges
	if e.weights != nil {
		edges = graph.EachWeight(func(yield func(src, dst uint32, weight float32) error) error {
			return e.each(func(src, dst uint32, weight float32, _ []float32) error { return yield(src, dst, weight) })
		})
	}
	if e.dim == 0 {
		return edges
	}
	return graph.WithFeatures(edges, e.dim, e.each)
}

// each is graph.FeaturedSource.EachFeatures.
func (e *edgeData) each(yield func(src, dst uint32, weight float32, features []float32) error) error {
	weights, features := cursor[float32]{chunks: e.weights}, cursor[float32]{chunks: e.features}
	return e.edges.Each(func(src, dst uint32) error {
		row, weight := features.next(e.dim), float32(1)
		if e.weights != nil {
			weight = weights.next(1)[0]
		}
		if weight == 0 {
			return nil
		}
		return yield(src, dst, weight, row)
	})
}

// weightedEdges stores a growing list of edges, and weights once one is not 1.
type weightedEdges struct {
	edgeBuffer
	edgeData
}

func newWeightedEdges(k *resources, at input) *weightedEdges {
	buffer := newEdgeBuffer(k, at)
	return &weightedEdges{buffer, edgeData{edges: buffer, features: &chunks[float32]{resources: k, input: at}}}
}

func (e *weightedEdges) put(pair [2]uint32, weight float32) {
	if weight != 1 && e.weights == nil {
		e.weights = &chunks[float32]{resources: e.resources, input: e.input}
		for range e.pairs {
			e.weights.add([]float32{1})
		}
	}
	if e.weights != nil {
		e.weights.add([]float32{weight})
	}
	e.add(pair[:])
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

// fewKinds is the limit of integers that are probably kinds of edges, not weights.
const fewKinds = 100

// checkKinds refuses an edge_attr of whole numbers that look like kinds of edges: as weights, they
// would multiply the messages, and edges of kind 0 would be dropped.
func (a ndarray) checkKinds() {
	values := must(a.Float32s())
	if len(values) == 0 || slices.ContainsFunc(values, isFraction) {
		return
	}
	least, most := slices.Min(values), slices.Max(values)
	isInteger := !strings.ContainsAny(a.Type, "fb")
	a.require(least == most || least < 0 || most >= fewKinds || least > 0 && !isInteger,
		"import kinds of edges with --edge-features edge_attr, leave them out with --drop-weights, or rename the array to "+
			"edge_weight if it has weights",
		"its whole numbers from %g to %g may be kinds of edges", least, most)
}

// checkWeights refuses weights that are negative or not finite. remedy is added to the message.
func checkWeights(at input, weights []float32, remedy string) {
	for i, w := range weights {
		if !(w >= 0 && w <= math.MaxFloat32) {
			at.require(false, "give edges finite weights of 0 or more"+remedy, "the weight of edge %d is %v", i, w)
		}
	}
}
