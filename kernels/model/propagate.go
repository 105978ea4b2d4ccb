package model

// Propagation after all products.
//
// APPNP (Gasteiger et al. 2019, equation 4): a perceptron computes H, which is then propagated
// K steps along the edges, each with a restart at H:
//
//	Z⁰ = H,  Z' = (1-α) Â Z + α H
//
// SGC (Wu et al. 2019, equation 8) is a GCN without activations, whose K products are one:
//
//	logits = Â^K X W + b
//
// Â^K (X W) is (Â^K X) W. With Spec.CacheInput the latter form caches Â^K X, dense and as wide
// as the features, and an epoch gathers nothing. In the former form exchanged rows are as wide
// as the number of classes, sparse features are multiplied directly and may have dropout, and
// nothing is cached.

var appnpKind = Kind{
	Name: "appnp", Help: "perceptron, then propagation of its rows with restarts", Paper: "Gasteiger et al. 2019",
	Coefficients: GCNCoefficients, Part: appnpPart, Widths: appnpWidths, Variates: true, Options: []Option{OptionAlpha, OptionHops},
	StateDict: LinearTensors("mlp"),
}

var sgcKind = Kind{
	Name: "sgc", Help: "simple graph convolution: one product after propagation", Paper: "Wu et al. 2019",
	Coefficients: GCNCoefficients, Part: sgcPart, Widths: sgcWidths, Powers: sgcPowers,
	StateDict: StateDict{
		"lin.weight": {Weight: "weight", Transpose: true, Part: "linear"},
		"lin.bias":   {Weight: "bias", Part: "propagate with bias"},
	},
}

func appnpWidths(d Design, layers, in, hidden, out int) []int {
	dims := []int{in}
	for range layers - 1 {
		dims = append(dims, hidden)
	}
	for range 1 + d.Hops {
		dims = append(dims, out)
	}
	return dims
}

func appnpPart(s Spec, l int) Part {
	h := s.Layers() - 1 - s.Design.Hops
	if l <= h {
		return Part{Kind: "mlp", Plain: l == h}
	}
	return Part{Kind: "propagate", From: []int{h}}
}

// sgcWidths returns the widths for as many steps as a GCN would have layers.
func sgcWidths(_ Design, layers, in, _, out int) []int {
	dims := []int{in, out}
	for range layers {
		dims = append(dims, out)
	}
	return dims
}

func sgcPart(s Spec, l int) Part {
	switch l {
	case 0:
		return Part{Kind: "linear", Plain: true}
	case s.Layers() - 1:
		return Part{Kind: "propagate with bias"}
	}
	return Part{Kind: "propagate", Plain: true}
}

func sgcPowers(s Spec) Powers { return Powers{s.Layers() - 1, s.Layers() - 1} }

func linearWeights(s Spec, l int) []Shape {
	return []Shape{{"weight", s.Dims[l], s.Dims[l+1], false}}
}

// linearLayer makes the layer H W.
func linearLayer(b *Builder, l int) Layer {
	if b.Spec.powered() {
		return poweredLayer(b, l)
	}
	b.Alloc(Emitted, b.Spec.Dims[l+1])
	b.ShareStorage(Output, Gathered)
	b.ShareStorage(GatheredGrad, OutputGrad)
	b.AllocGrad(InputGrad)
	h, w := b.Hidden(), b.Weight(l, 0)
	return &pointwise{stages{
		Emit: {Flow{Reads: []Value{Input}, Writes: []Value{Emitted}}, func(x *Step) {
			h.Multiply(x, x.At(Emitted), x.W(w))
		}},
		EmitBackward: {Flow{Reads: []Value{EmittedGrad, Input}, Writes: []Value{InputGrad}, Grads: []Param{w}}, func(x *Step) {
			h.MultiplyGrad(x, x.Grad(w), x.At(EmittedGrad))
			h.InputGrad(x, x.At(InputGrad), x.At(EmittedGrad), x.W(w), false)
		}},
	}}
}

func propagateLayer(b *Builder, l int) Layer {
	if b.Spec.powered() {
		return powerStepLayer(b, l)
	}
	b.shareEnds()
	b.ShareStorage(Output, Gathered)
	p := &propagate{width: b.Spec.Dims[l], constant: b.constant}
	p.stages[Emit].Flow = Flow{Reads: []Value{Input}}
	p.stages[ApplyBackward].Flow = Flow{Reads: []Value{OutputGrad}, Grads: b.params[l]}
	if len(b.Skips()) > 0 {
		h, alpha := b.Skips()[0], float32(b.Spec.Design.Alpha)
		p.stages[Apply] = stageWork{Flow{Reads: []Value{Gathered, h.Rows()}, Writes: []Value{Output}}, func(x *Step) {
			x.Ops.Blend(x.At(Gathered), 1-alpha, x.At(h.Rows()), alpha)
		}}
		p.stages[ApplyBackward] = stageWork{
			Flow{Reads: append(h.GradValues(), OutputGrad), Writes: []Value{GatheredGrad, h.Grad()}}, func(x *Step) {
				grad := x.At(GatheredGrad)
				h.AddGrad(x, grad, alpha)
				x.Ops.Blend(grad, 0, grad, 1-alpha)
			}}
	} else if len(b.params[l]) > 0 {
		bias := b.Weight(l, 0)
		p.stages[Apply] = stageWork{Flow{Reads: []Value{Gathered}, Writes: []Value{Output}}, func(x *Step) {
			x.Ops.BiasReLUDropout(x.At(Gathered), x.At(Gathered), x.W(bias), false, nil)
		}}
		p.stages[ApplyBackward].run = func(x *Step) { x.Ops.ColumnSums(x.Grad(bias), x.At(GatheredGrad), false) }
	}
	return p
}

// propagate is one propagation step, in place.
type propagate struct {
	stages
	width    int
	constant bool
}

func (p *propagate) GatherWidth() int { return p.width }

func (p *propagate) GathersBackward() bool { return !p.constant }
