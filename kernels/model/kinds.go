package model

import "siafu/internal/mapped"

// Kind describes a kind of network: the weights of its layers, the layers, and the
// coefficients that edges carry. Each has its own file.
type Kind struct {
	Name string
	// Weights returns the weights of layer l, in the order of Builder.Weight. Their names in
	// files are "layers.L." and the shape's name.
	Weights func(s Spec, l int) []Shape
	// Layer makes layer l. It requests all its memory from b.
	Layer func(b *Builder, l int) Layer
	// Coefficients returns the coefficients of edges, from the degrees of own vertices and
	// then ghosts. Arrays are allocated in a, and elements are read and written only in
	// a.Fill, because a forecast calls it too. nil: the network does not use the graph.
	Coefficients func(d Degrees, own int, a *mapped.Arena) Coefficients
	// Maximum means that layers gather maxima of rows, column by column, instead of sums; 0
	// without edges. Attends means that all layers are Attended, Dynamic that there are
	// weights along edges. Coefficients are then SumCoefficients or OtherCoefficients.
	Maximum, Attends, Dynamic bool
	// Order is "gather-first" or "apply-first" for layers that know only one, empty for layers
	// that use Spec.Orders.
	Order string
	// Part describes layer l, and Widths returns the widths between layers (Spec.Widths): nil
	// if all layers are of this kind.
	Part   func(s Spec, l int) Part
	Widths func(d Design, layers, in, hidden, out int) []int
	// Rectifies means that hidden layers end in ReLU and dropout, and their backward pass
	// starts with activateGrad. If such a layer multiplies first, only products compute its
	// input's gradient, which can then replace the input (Spec.InPlace).
	Rectifies bool
	// Powers returns the cached powers of Â times the features that the first layer uses;
	// later layers then gather nothing. nil: every layer gathers, and the cached input of the
	// first one is ÂX.
	Powers func(s Spec) Powers
	// Inner layers have their own weight decay, and Square layers keep the width of their
	// input.
	Inner, Square bool
	// Starts has the initial values of weights that are not random, and Running the weights
	// that are running means of their gradients and take no optimiser steps.
	Starts  map[string]float32
	Running []string
	// Initializer is the default initialiser of the first weights; empty: xavier.
	Initializer string
}

// Shape is a weight matrix [Rows x Cols] or, with one row, a bias, which is initially zero and
// has no weight decay.
type Shape struct {
	Name       string
	Rows, Cols int
	Bias       bool
}

// kinds returns all named networks; add new ones here.
func kinds() []Kind {
	return []Kind{
		{Name: "gcn", Weights: OneProduct, Layer: gcnLayer, Coefficients: GCNCoefficients, Rectifies: true, Initializer: "small-logits"},
		{Name: "sage", Weights: sageWeights, Layer: sageLayer, Coefficients: MeanCoefficients, Rectifies: true, Initializer: "small-logits"},
		{Name: "sage-max", Weights: sageWeights, Layer: sageLayer, Coefficients: OtherCoefficients, Maximum: true, Order: "gather-first", Rectifies: true, Initializer: "small-logits"},
		{Name: "sage-pool", Weights: poolWeights, Layer: poolLayer, Coefficients: OtherCoefficients, Maximum: true, Order: "apply-first", Rectifies: true, Initializer: "small-logits"},
		{Name: "gin", Weights: ginWeights, Layer: ginLayer, Coefficients: SumCoefficients, Rectifies: true, Initializer: "small-logits"},
		{Name: "gat", Weights: gatWeights, Layer: gatLayer, Coefficients: SumCoefficients, Attends: true, Order: "apply-first", Initializer: "small-logits"},
		{Name: "gatv2", Weights: gatv2Weights, Layer: gatv2Layer, Coefficients: SumCoefficients, Attends: true, Dynamic: true, Order: "apply-first", Initializer: "small-logits"},
		{Name: "mlp", Weights: OneProduct, Layer: gcnLayer, Rectifies: true, Initializer: "small-logits"},
		{Name: "gcnii", Coefficients: GCNCoefficients, Part: gcniiPart, Widths: gcniiWidths, Initializer: "small-logits"},
		{Name: "appnp", Coefficients: GCNCoefficients, Part: appnpPart, Widths: appnpWidths, Initializer: "small-logits"},
		{Name: "sgc", Coefficients: GCNCoefficients, Part: sgcPart, Widths: sgcWidths, Powers: sgcPowers, Initializer: "small-logits"},
		{Name: "sign", Coefficients: GCNCoefficients, Part: signPart, Widths: signWidths, Powers: signPowers, Initializer: "small-logits"},
	}
}

// Kinds returns the names that Spec.Kind accepts.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.Name)
	}
	return names
}

// kind returns the custom description, else the one that Kind names.
func (s Spec) kind() Kind {
	if s.Custom != nil {
		return *s.Custom
	}
	return named(s.Kind, kinds())
}

func named(name string, list []Kind) Kind {
	for _, k := range list {
		if k.Name == name {
			return k
		}
	}
	panic("model: unknown kind of network")
}

// OneProduct returns one matrix [in x out] and its bias.
func OneProduct(s Spec, l int) []Shape {
	in, out := s.Dims[l], s.Dims[l+1]
	return []Shape{{"weight", in, out, false}, {"bias", 1, out, true}}
}
