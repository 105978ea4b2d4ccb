package model

import (
	"siafu/graph/mapped"
	"siafu/kernels"
)

// GIN-0 (Xu et al. 2019, equation 4.1 with ε = 0), without batch
// normalisation:
//
//	H' = dropout(relu(relu((A + I) H W1 + b1) W2 + b2))
//
// without the outer relu and dropout in the last layer. As in GCN, the first
// product of the perceptron may come first: ((A + I) H) W1 or (A + I) (H W1).

// SumCoefficients are ones, on the self loop too. Attention takes the self loop
// alone from them.
func SumCoefficients(_, _ []uint32, _ int, _ *mapped.Arena) Coefficients {
	return Coefficients{SelfLoops: true}
}

func ginWeights(s Spec, l int) []Shape {
	in, out := s.Dims[l], s.Dims[l+1]
	return []Shape{{"weight", in, out, false}, {"bias", 1, out, true}, {"mlp.weight", out, out, false}, {"mlp.bias", 1, out, true}}
}

func ginLayer(b *Builder, l int) Layer {
	g := &gin{dense: b.dense(l), second: b.Weight(l, 2), bias: b.Weight(l, 3), first: b.Spec.Orders[l], h: b.Hidden(l)}
	own := b.Room(g.out)
	if g.first == ApplyFirst {
		g.emitted = own
	} else {
		g.inner = own
	}
	g.gradInner, g.output, g.gradIn = b.Room(g.out), b.Room(g.out), b.GradRoom(l)
	return g
}

// gin is one layer.
type gin struct {
	dense           // W1 and b1
	second   Weight // W2
	bias     Weight // b2
	first    Order
	h        Hidden
	emitted  []float32 // HW1 [rows x out], nil where H itself is emitted
	gathered []float32
	// The hidden layer of the perceptron, in the place of what was gathered if
	// that has its width, its gradient and the output [rows x out].
	inner, gradInner, output []float32
	gradIn                   []float32 // [rows x in], nil in the first layer
}

func (g *gin) GatherWidth() int {
	if g.first == ApplyFirst {
		return g.out
	}
	return g.in
}

func (g *gin) GathersBackward() bool { return g.first == ApplyFirst || !g.h.Constant() }

func (g *gin) Emit(h []float32, p Pass) []float32 {
	g.h.Take(h)
	if g.first == ApplyFirst {
		g.h.Multiply(g.emitted, g.out, g.w, p)
		return g.emitted
	}
	return g.h.Rows(p)
}

func (g *gin) Apply(gathered []float32, p Pass) []float32 {
	g.hide(gathered)
	kernels.MatMulBiasReLUDropout(g.team, g.output, g.rows, g.out, g.out, g.inner, g.second.W, g.bias.W, !g.last, p.Mask(g.drop))
	return g.output
}

// hide computes the hidden layer of the perceptron.
func (g *gin) hide(gathered []float32) {
	g.gathered = gathered
	switch {
	case g.first == ApplyFirst:
		kernels.BiasReLUDropout(g.team, gathered, g.rows, g.out, gathered, g.b, true, nil)
		g.inner = gathered
	case g.h.cached != nil:
		g.h.cached.apply(g.inner, g.out, g.w, g.b, true, nil)
	default:
		kernels.MatMulBiasReLUDropout(g.team, g.inner, g.rows, g.out, g.in, gathered, g.w, g.b, true, nil)
	}
}

func (g *gin) ApplyGrad(grad []float32, p Pass) []float32 {
	kernels.BiasReLUDropoutGrad(g.team, grad, g.bias.Grad, g.rows, g.out, grad, g.output, !g.last, p.Mask(g.drop))
	kernels.MatMulTransA(g.team, g.second.Grad, g.out, g.out, g.rows, g.inner, grad, false)
	kernels.MatMulTransB(g.team, g.gradInner, g.rows, g.out, g.out, grad, g.second.W, false)
	kernels.BiasReLUDropoutGrad(g.team, g.gradInner, g.gb, g.rows, g.out, g.gradInner, g.inner, true, nil)
	if g.first == ApplyFirst {
		return g.gradInner
	}
	g.h.MultiplyGatheredGrad(g.gw, g.out, g.gathered, g.gradInner)
	g.h.InputGrad(g.gradIn, g.out, g.gradInner, g.w, false)
	return g.gradIn
}

func (g *gin) EmitGrad(grad []float32, p Pass) []float32 {
	if g.first == GatherFirst {
		return grad
	}
	g.h.MultiplyGrad(g.gw, g.out, grad, p)
	g.h.InputGrad(g.gradIn, g.out, grad, g.w, false)
	return g.gradIn
}
