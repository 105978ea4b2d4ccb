package importers

import (
	"math"

	"siafu/graph"
	"siafu/graph/npy"
)

// weightedEdges are edges that have weights from the first one on that is not 1.
type weightedEdges struct {
	edgeBuffer
	weights *chunks[float32] // nil: all are 1
}

func newWeightedEdges(k *keeper, op, path string) *weightedEdges {
	return &weightedEdges{edgeBuffer: newEdgeBuffer(k, op, path)}
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

// source is the edges, a graph.WeightedSource where they have weights.
func (e *weightedEdges) source() graph.EdgeSource {
	if e.weights == nil {
		return e.edgeBuffer
	}
	return e
}

// EachWeight implements graph.WeightedSource.
func (e *weightedEdges) EachWeight(yield func(src, dst uint32, weight float32) error) error {
	chunk, rest := 0, e.weights.filled(0)
	return e.Each(func(src, dst uint32) error {
		if len(rest) == 0 {
			chunk++
			rest = e.weights.filled(chunk)
		}
		w := rest[0]
		rest = rest[1:]
		return yield(src, dst, w)
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

// pygWeights gives edges the weights of edge_weight, else of an edge_attr of one column;
// none where all are 1.
func pygWeights(o Options, in namedArrays, edges endRows) (graph.EdgeSource, error) {
	for _, name := range []string{"edge_weight", "edge_attr"} {
		if !in.has(name) {
			continue
		}
		a := in.get(name)
		if a.err == nil && len(a.Shape) == 2 && a.Shape[1] > 1 {
			o.Log("warning: path=%s %s is not used: it has %d columns, and an edge has one weight", o.Src, name, a.Shape[1])
			continue
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
