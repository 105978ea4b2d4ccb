package model

import (
	"siafu/internal/mapped"
	"siafu/kernels"
)

// GIN-0 (Xu et al. 2019, equation 4.1 with ε = 0), without batch
// normalisation:
//
//	H' = dropout(relu(relu((A + I) H W1 + b1) W2 + b2))
//
// without the outer relu and dropout in the last layer. As in GCN, the first product of the
// perceptron may precede the gather: ((A + I) H) W1 or (A + I) (H W1). A includes edge
// weights, if any.

var ginKind = Kind{
	Name: "gin", Help: "graph isomorphism network: a sum, then a perceptron", Paper: "Xu et al. 2019",
	Weights: ginWeights, Layer: ginLayer, Coefficients: SumCoefficients, Rectifies: true,
	PlainSum: true, Whole: true, Recommended: Design{Norm: "batch", Jumping: "cat"}, // §4.2 and §7 of the paper
	StateDict: StateDict{
		"nn.0.weight": {Weight: "weight", Transpose: true}, "nn.0.bias": {Weight: "bias"},
		"nn.2.weight": {Weight: "mlp.weight", Transpose: true}, "nn.2.bias": {Weight: "mlp.bias"},
		"nn.lins.0.weight": {Weight: "weight", Transpose: true}, "nn.lins.0.bias": {Weight: "bias"},
		"nn.lins.1.weight": {Weight: "mlp.weight", Transpose: true}, "nn.lins.1.bias": {Weight: "mlp.bias"},
		"eps": {},
	},
}

// SumCoefficients returns ones, with self loops. Attention uses only the self loop from them.
func SumCoefficients(_ Degrees, _ int, _ *mapped.Arena) Coefficients {
	return Coefficients{SelfLoops: true}
}

func ginWeights(s Spec, l int) []Shape {
	in, out := s.Dims[l], s.Dims[l+1]
	return []Shape{{"weight", in, out, false}, {"bias", 1, out, true}, {"mlp.weight", out, out, false}, {"mlp.bias", 1, out, true}}
}

func ginLayer(b *Builder, l int) Layer {
	g := &gin{dense: newDense(b, l, true), second: b.Weight(l, 2), bias: b.Weight(l, 3)}
	b.Alloc(Output, g.out)
	if g.inPlace = b.Spec.InPlace; g.inPlace {
		b.ShareStorage(innerGrad, inner)
	} else {
		b.Alloc(innerGrad, g.out)
	}
	perceptron := []Param{g.b, g.second, g.bias}
	if g.first == ApplyFirst {
		b.ShareStorage(inner, Gathered)
		b.ShareStorage(GatheredGrad, innerGrad)
		b.AllocInputGrad()
		g.stages[ApplyBackward].Flow = Flow{Reads: []Value{OutputGrad, Output, inner},
			Writes: []Value{OutputGrad, innerGrad, GatheredGrad}, Grads: perceptron}
		g.stages[EmitBackward] = stageWork{
			Flow{Reads: []Value{EmittedGrad, Input}, Writes: []Value{InputGrad}, Grads: []Param{g.w}}, g.emitBackward}
	} else {
		b.Alloc(inner, g.out)
		g.allocGatheredGrad(b)
		b.ShareStorage(InputGrad, EmittedGrad)
		g.stages[ApplyBackward].Flow = Flow{
			Reads: []Value{OutputGrad, Output, inner, Gathered}, Writes: []Value{OutputGrad, innerGrad, GatheredGrad},
			Grads: append(perceptron, g.w),
		}
		if g.inputDrop != nil {
			g.stages[EmitBackward] = stageWork{Flow{Reads: []Value{EmittedGrad}, Writes: []Value{InputGrad}}, g.dropGrad}
		}
	}
	g.stages[Emit] = stageWork{g.emits(), g.emit}
	g.stages[Apply] = stageWork{Flow{Reads: []Value{Gathered}, Writes: []Value{inner, Output}}, g.apply}
	g.stages[ApplyBackward].run = g.applyBackward
	return g
}

// The hidden layer of the perceptron [n x out] and its gradient.
const (
	inner = Own + iota
	innerGrad
)

// gin is one layer.
type gin struct {
	*dense        // W1 and b1
	second  Param // W2
	bias    Param // b2
	inPlace bool  // the gradient of the hidden layer replaces it
}

func (g *gin) apply(x *Step) {
	if g.first == ApplyFirst {
		x.Ops.BiasReLUDropout(x.At(inner), x.At(Gathered), x.W(g.b), true, nil)
	} else {
		x.Ops.MatMulBiasReLUDropout(x.At(inner), x.At(Gathered), x.W(g.w), x.W(g.b), true, nil)
	}
	x.Ops.MatMulBiasReLUDropout(x.At(Output), x.At(inner), x.W(g.second), x.W(g.bias), !g.last, x.Mask(g.drop))
}

func (g *gin) applyBackward(x *Step) {
	grad, within := x.At(OutputGrad), x.At(innerGrad)
	g.activateGrad(x, g.bias)
	x.Ops.MatMulTransA(x.Grad(g.second), x.At(inner), grad, false)
	if g.inPlace {
		x.Ops.GradThrough(within, grad, x.W(g.second), kernels.Mat{}, kernels.Mat{}, nil)
		x.Ops.ColumnSums(x.Grad(g.b), within, false)
	} else {
		x.Ops.MatMulTransB(within, grad, x.W(g.second), false)
		x.Ops.BiasReLUDropoutGrad(within, x.Grad(g.b), within, x.At(inner), true, nil)
	}
	if g.first == GatherFirst {
		g.gatheredGrad(x, within)
	}
}
