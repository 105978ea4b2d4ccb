package model

import (
	"siafu/internal/elementary"
	"siafu/kernels"
)

// GCNII (Chen et al. 2020, equation 5): after a first product H⁰ = relu(X W + b), layers
//
//	P  = (1-α) Â H + α H⁰
//	H' = dropout(relu((1-β) P + β P W)),  β = ln(θ/depth + 1)
//
// and a last product. Dropout of H⁰ applies only to the first H. The initial rows reach any
// depth, and each layer is near the identity, so that 64 layers learn.

var gcniiKind = Kind{
	Name: "gcnii", Help: "deep GCN with initial residuals and identity mappings", Paper: "Chen et al. 2020",
	Coefficients: GCNCoefficients, Part: gcniiPart, Widths: gcniiWidths, Variates: true,
	Options: []Option{OptionAlpha, OptionTheta, OptionInnerDecay},
	StateDict: StateDict{ // Linear and GCN2Conv
		"weight": {Weight: "weight", Transpose: true, Part: "mlp"}, "bias": {Weight: "bias", Part: "mlp"},
		"weight1": {Weight: "weight", Part: "initial"},
	},
}

func gcniiWidths(_ Design, layers, in, hidden, out int) []int {
	dims := []int{in}
	for range 2 + layers { // H⁰, with dropout, and the layers
		dims = append(dims, hidden)
	}
	return append(dims, out)
}

func gcniiPart(s Spec, l int) Part {
	switch {
	case l == s.Layers()-1:
		return Part{Kind: "mlp"}
	case l == 0:
		return Part{Kind: "mlp", Kept: true}
	case l == 1:
		return Part{Kind: "drop"}
	}
	return Part{Kind: "initial", Depth: l - 1, From: []int{0}}
}

func initialWeights(s Spec, l int) []Shape {
	return []Shape{{"weight", s.Dims[l], s.Dims[l+1], false}}
}

func initialLayer(b *Builder, l int) Layer {
	b.ShareStorage(Emitted, Input)
	b.Alloc(Output, b.Spec.Dims[l+1])
	b.AllocGrad(GatheredGrad)
	b.ShareStorage(InputGrad, EmittedGrad)
	g := &initial{
		alpha: float32(b.Spec.Design.Alpha), beta: float32(elementary.Log(b.Spec.Design.Theta/float64(b.Depth()) + 1)),
		width: b.Spec.Dims[l], w: b.Weight(l, 0), first: b.Skips()[0], drop: b.Dropout(l),
	}
	g.stages = stages{
		Emit:  {Flow{Reads: []Value{Input}}, nil},
		Apply: {Flow{Reads: []Value{Gathered, g.first.Rows()}, Writes: []Value{Gathered, Output}}, g.apply},
		ApplyBackward: {Flow{
			Reads:  append(g.first.GradValues(), OutputGrad, Output, Gathered),
			Writes: []Value{OutputGrad, GatheredGrad, g.first.Grad()}, Grads: []Param{g.w},
		}, g.applyBackward},
	}
	return g
}

// initial is one layer; P replaces what was gathered.
type initial struct {
	stages
	alpha, beta float32
	width       int
	w           Param
	first       Skip // H⁰
	drop        *Dropout
}

func (g *initial) GatherWidth() int { return g.width }

func (g *initial) GathersBackward() bool { return true }

func (g *initial) apply(x *Step) {
	p, h := x.At(Gathered), x.At(Output)
	x.Ops.Blend(p, 1-g.alpha, x.At(g.first.Rows()), g.alpha)
	x.Ops.MatMul(h, p, x.W(g.w), false)
	x.Ops.Blend(h, g.beta, p, 1-g.beta)
	x.Ops.BiasReLUDropout(h, h, kernels.Mat{}, true, x.Mask(g.drop))
}

func (g *initial) applyBackward(x *Step) {
	grad, back, w := x.At(OutputGrad), x.At(GatheredGrad), x.Grad(g.w)
	x.Ops.BiasReLUDropoutGrad(grad, kernels.Mat{}, grad, x.At(Output), true, x.Mask(g.drop))
	x.Ops.MatMulTransA(w, x.At(Gathered), grad, false)
	x.Ops.Blend(w, 0, w, g.beta)
	x.Ops.MatMulTransB(back, grad, x.W(g.w), false)
	x.Ops.Blend(back, g.beta, grad, 1-g.beta)
	g.first.AddGrad(x, back, g.alpha)
	x.Ops.Blend(back, 0, back, 1-g.alpha)
}
