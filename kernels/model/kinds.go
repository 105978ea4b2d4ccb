package model

import "siafu/graph/mapped"

// kind is what tells one kind of network from another; each has a file of its
// own for its layers.
type kind struct {
	// shapes are the weights of a layer, in their order; the names of a layer's
	// weights begin with its own.
	shapes func(s Spec, l int) []shape
	layer  func(b *builder, l int) Layer
	// coefficients of the edges; nil where a network does not use the graph.
	coefficients func(inDegree, outDegree []uint32, own int, a *mapped.Arena) Coefficients
	// order is "gather-first" or "apply-first" where the shapes don't decide.
	order string
}

type shape struct {
	name       string
	rows, cols int
	bias       bool
}

// Kinds are the names of all networks.
func Kinds() []string { return []string{"gcn", "sage", "gin", "gat", "mlp"} }

// kind is what Kind names.
func (s Spec) kind() kind {
	switch s.Kind {
	case "gcn":
		return kind{shapes: oneProduct, layer: gcnLayer, coefficients: gcnCoefficients}
	case "sage":
		return kind{shapes: sageShapes, layer: sageLayer, coefficients: meanCoefficients}
	case "gin":
		return kind{shapes: ginShapes, layer: ginLayer, coefficients: sumCoefficients, order: "gather-first"}
	case "gat":
		return kind{shapes: gatShapes, layer: gatLayer, coefficients: noCoefficients, order: "apply-first"}
	case "mlp":
		return kind{shapes: oneProduct, layer: gcnLayer}
	}
	panic("model: unknown kind of network")
}

// noCoefficients are for edges that carry attention.
func noCoefficients(_, _ []uint32, _ int, _ *mapped.Arena) Coefficients {
	return Coefficients{SelfLoops: true}
}

// oneProduct is one matrix and its bias.
func oneProduct(s Spec, l int) []shape {
	in, out := s.Dims[l], s.Dims[l+1]
	return []shape{{"weight", in, out, false}, {"bias", 1, out, true}}
}
