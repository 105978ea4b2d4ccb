package model

import "siafu/internal/mapped"

// Kind describes a kind of network: the weights of its layers, the layers, and
// the coefficients that edges carry. Each has a file of its own.
type Kind struct {
	Name string
	// Weights are those of layer l, in the order in which Builder.Weight counts
	// them. The names that files know them by are "layers.L." and their own.
	Weights func(s Spec, l int) []Shape
	// Layer makes layer l. All room that it needs comes from b.
	Layer func(b *Builder, l int) Layer
	// Coefficients are those of the edges, from the degrees of own vertices and
	// then ghosts. Its arrays are made in a, and it reads and
	// writes elements only in what it gives to a.Fill: a forecast makes them too.
	// nil: the network does not use the graph.
	Coefficients func(d Degrees, own int, a *mapped.Arena) Coefficients
	// Maximum has layers gather maxima of rows, column by column, and 0 where there are
	// none, in the place of sums; and Attends tells that all are Attended, Dynamic that there
	// are weights along edges. Coefficients are then SumCoefficients or OtherCoefficients.
	Maximum, Attends, Dynamic bool
	// Order is "gather-first" or "apply-first" for layers that know only one,
	// empty for those that look at Spec.Orders.
	Order string
	// Part says what layer l is, and Widths what is as wide between N layers of what
	// was asked for (Spec.Widths): nil where all layers are of this kind.
	Part   func(s Spec, l int) Part
	Widths func(d Design, layers, in, hidden, out int) []int
	// Rectifies tells that hidden layers end in ReLU and dropout, that their backward pass begins with
	// activateGrad, and that where they multiply first the gradient of their input is products alone, so
	// that it can take the place of that input (Spec.InPlace).
	Rectifies bool
	// Powers are those of Â of the features that the first layer applies to where they are
	// kept, and the layers after it then gather nothing: nil where layers each gather for
	// themselves, and ÂX is what the first one would have gathered.
	Powers func(s Spec) Powers
	// Inner layers have a weight decay of their own, and Square ones make rows as wide as
	// their input.
	Inner, Square bool
	// Starts are the weights that begin with a value instead of a random one, and Running
	// those that are running means of their gradients instead of an optimiser's steps.
	Starts  map[string]float32
	Running []string
	// Initializer is what the first weights are drawn by unless another one is
	// asked for; empty: xavier.
	Initializer string
}

// Shape is a weight matrix [Rows x Cols] or, with one row, a bias, which starts
// at zero and has no weight decay.
type Shape struct {
	Name       string
	Rows, Cols int
	Bias       bool
}

// kinds are all networks that have a name; a new one is a line here.
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

// Kinds are the names of all networks that Spec.Kind can name.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.Name)
	}
	return names
}

// kind is the network's own description, else what Kind names.
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

// OneProduct is one matrix [in x out] and its bias.
func OneProduct(s Spec, l int) []Shape {
	in, out := s.Dims[l], s.Dims[l+1]
	return []Shape{{"weight", in, out, false}, {"bias", 1, out, true}}
}
