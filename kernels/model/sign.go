package model

// SIGN (Frasca et al. 2020, §4): powers of Â times the features, each with its own product,
// concatenated, and then a perceptron:
//
//	H = dropout(relu([X W⁰, Â X W¹, …, Âʳ X Wʳ] + b))
//
// As with SGC, Âᵏ (X Wᵏ) is (Âᵏ X) Wᵏ. With Spec.CacheInput the r dense matrices Âᵏ X, as wide
// as the features, are computed before training and cached, as in the paper. Otherwise one
// product computes all columns, and step k gathers all but the first k blocks once more:
// nothing is cached, sparse features are multiplied directly and may have dropout, and an
// epoch gathers r (r+1) / 2 blocks in each direction.

var signKind = Kind{
	Name: "sign", Help: "perceptron over propagated features, one block per step", Paper: "Frasca et al. 2020",
	Coefficients: GCNCoefficients, Part: signPart, Widths: signWidths, Powers: signPowers, Options: []Option{OptionPowers},
	MinLayers: 2, // the powers' products, and the perceptron after them
}

func signWidths(d Design, layers, in, hidden, out int) []int {
	dims := []int{in}
	for range 1 + d.Hops {
		dims = append(dims, (1+d.Hops)*hidden)
	}
	for range layers - 2 {
		dims = append(dims, hidden)
	}
	return append(dims, out)
}

func signPart(s Spec, l int) Part {
	switch r := s.Design.Hops; {
	case l == 0:
		return Part{Kind: "linear", Plain: true}
	case l < r:
		return Part{Kind: "power", Depth: l, Plain: true}
	case l == r:
		return Part{Kind: "last power", Depth: l}
	}
	return Part{Kind: "mlp"}
}

func signPowers(s Spec) Powers { return Powers{0, s.Design.Hops} }

func powerLayer(b *Builder, l int) Layer {
	if b.Spec.powered() {
		return powerStepLayer(b, l)
	}
	k := b.Depth()
	p := &power{from: b.Spec.Dims[l] / (1 + b.Spec.Design.Hops) * k}
	p.width = b.Spec.Dims[l] - p.from
	b.Alloc(Emitted, p.width)
	b.Alloc(Output, b.Spec.Dims[l+1])
	b.Alloc(GatheredGrad, p.width)
	b.ShareStorage(InputGrad, OutputGrad)
	put := func(x *Step) {
		x.Ops.Copy(x.At(Output), x.At(Input))
		x.Ops.PutColumns(x.At(Output), p.from, x.At(Gathered))
	}
	copyGrad := func(x *Step) { x.Ops.CopyColumns(x.At(GatheredGrad), x.At(OutputGrad), p.from) }
	p.stages = stages{
		Emit: {Flow{Reads: []Value{Input}, Writes: []Value{Emitted}}, func(x *Step) {
			x.Ops.CopyColumns(x.At(Emitted), x.At(Input), p.from)
		}},
		Apply:         {Flow{Reads: []Value{Gathered, Input}, Writes: []Value{Output}}, put},
		ApplyBackward: {Flow{Reads: []Value{OutputGrad}, Writes: []Value{GatheredGrad}}, copyGrad},
		EmitBackward: {Flow{Reads: []Value{EmittedGrad, OutputGrad}, Writes: []Value{InputGrad}}, func(x *Step) {
			x.Ops.PutColumns(x.At(OutputGrad), p.from, x.At(EmittedGrad))
		}},
	}
	if len(b.params[l]) == 0 {
		return p
	}
	bias, drop := b.Weight(l, 0), b.Dropout(l)
	p.stages[Apply].run = func(x *Step) {
		put(x)
		x.Ops.BiasReLUDropout(x.At(Output), x.At(Output), x.W(bias), true, x.Mask(drop))
	}
	back := Flow{Reads: []Value{OutputGrad, Output}, Writes: []Value{OutputGrad, GatheredGrad}, Grads: []Param{bias}}
	p.stages[ApplyBackward] = stageWork{back, func(x *Step) {
		grad := x.At(OutputGrad)
		x.Ops.BiasReLUDropoutGrad(grad, x.Grad(bias), grad, x.At(Output), true, x.Mask(drop))
		copyGrad(x)
	}}
	return p
}

// power gathers width columns from `from` on once; the others stay. The last one applies the
// activation to all.
type power struct {
	stages
	from, width int
}

func (p *power) GatherWidth() int { return p.width }

func (p *power) GathersBackward() bool { return true }
