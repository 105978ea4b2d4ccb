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
	p := &power{bias: b.params[l], drop: b.Dropout(l), from: b.Spec.Dims[l] / (1 + b.Spec.Design.Hops) * k}
	p.width = b.Spec.Dims[l] - p.from
	b.Alloc(Emitted, p.width)
	b.Alloc(Output, b.Spec.Dims[l+1])
	b.Alloc(GatheredGrad, p.width)
	b.ShareStorage(InputGrad, OutputGrad)
	return p
}

// power gathers width columns from `from` on once; the others stay. The last one applies the
// activation to all.
type power struct {
	from, width int
	bias        []Param // only in the last one
	drop        *Dropout
}

func (p *power) GatherWidth() int { return p.width }

func (p *power) GathersBackward() bool { return true }

func (p *power) Flow(s Stage) Flow {
	switch {
	case s == Emit:
		return Flow{Reads: []Value{Input}, Writes: []Value{Emitted}}
	case s == Apply:
		return Flow{Reads: []Value{Gathered, Input}, Writes: []Value{Output}}
	case s == ApplyBackward && len(p.bias) > 0:
		return Flow{Reads: []Value{OutputGrad, Output}, Writes: []Value{OutputGrad, GatheredGrad}, Grads: p.bias}
	case s == ApplyBackward:
		return Flow{Reads: []Value{OutputGrad}, Writes: []Value{GatheredGrad}}
	case s == EmitBackward:
		return Flow{Reads: []Value{EmittedGrad, OutputGrad}, Writes: []Value{InputGrad}}
	}
	return Flow{}
}

func (p *power) Run(s Stage, x *Step) {
	h, grad := x.At(Output), x.At(OutputGrad)
	switch s {
	case Emit:
		x.Ops.CopyColumns(x.At(Emitted), x.At(Input), p.from)
	case Apply:
		x.Ops.Copy(h, x.At(Input))
		x.Ops.PutColumns(h, p.from, x.At(Gathered))
		if len(p.bias) > 0 {
			x.Ops.BiasReLUDropout(h, h, x.W(p.bias[0]), true, x.Mask(p.drop))
		}
	case ApplyBackward:
		if len(p.bias) > 0 {
			x.Ops.BiasReLUDropoutGrad(grad, x.Grad(p.bias[0]), grad, h, true, x.Mask(p.drop))
		}
		x.Ops.CopyColumns(x.At(GatheredGrad), grad, p.from)
	case EmitBackward:
		x.Ops.PutColumns(grad, p.from, x.At(EmittedGrad))
	}
}
