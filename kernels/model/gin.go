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
// without the outer relu and dropout in the last layer.

// sumCoefficients are ones, on the self loop too.
func sumCoefficients(_, _ []uint32, _ int, _ *mapped.Arena) Coefficients {
	return Coefficients{SelfLoops: true}
}

func ginShapes(s Spec, l int) []shape {
	in, out := s.Dims[l], s.Dims[l+1]
	return []shape{{"weight", in, out, false}, {"bias", 1, out, true}, {"mlp.weight", out, out, false}, {"mlp.bias", 1, out, true}}
}

func ginLayer(b *builder, l int) Layer {
	g := &gin{dense: b.dense(l), second: b.linear(l, 2), bias: b.linear(l, 3), h: b.hidden(l)}
	g.inner, g.gradInner, g.output = b.room(g.out), b.room(g.out), b.room(g.out)
	if l > 0 {
		g.gradIn = b.room(g.in)
	}
	return g
}

// gin is one layer.
type gin struct {
	dense           // W1 and b1
	second   linear // W2
	bias     linear // b2
	h        hidden
	gathered []float32
	// The hidden layer of the perceptron, its gradient and the output [rows x out].
	inner, gradInner, output []float32
	gradIn                   []float32 // [rows x in], nil in the first layer
}

func (g *gin) GatherWidth() int { return g.in }

func (g *gin) GathersBack() bool { return !g.h.features() }

func (g *gin) Emit(h []float32, p Pass) []float32 {
	g.h.take(h)
	return g.h.rows(p)
}

func (g *gin) Apply(gathered []float32, p Pass) []float32 {
	g.gathered = gathered
	if g.h.kept != nil {
		g.h.kept.apply(g.inner, g.out, g.w, g.b, true, nil)
	} else {
		kernels.MatMulBiasReLUDropout(g.team, g.inner, g.rows, g.out, g.in, gathered, g.w, g.b, true, nil)
	}
	kernels.MatMulBiasReLUDropout(g.team, g.output, g.rows, g.out, g.out, g.inner, g.second.w, g.bias.w, !g.last, g.dropout(p))
	return g.output
}

func (g *gin) ApplyGrad(grad []float32, p Pass) []float32 {
	kernels.BiasReLUDropoutGrad(g.team, grad, g.bias.gw, g.rows, g.out, grad, g.output, !g.last, g.dropout(p))
	kernels.MatMulTransA(g.team, g.second.gw, g.out, g.out, g.rows, g.inner, grad, false)
	kernels.MatMulTransB(g.team, g.gradInner, g.rows, g.out, g.out, grad, g.second.w, false)
	kernels.BiasReLUDropoutGrad(g.team, g.gradInner, g.gb, g.rows, g.out, g.gradInner, g.inner, true, nil)
	if g.h.kept != nil {
		g.h.kept.multiplyGrad(g.gw, g.out, g.gradInner)
		return nil
	}
	kernels.MatMulTransA(g.team, g.gw, g.in, g.out, g.rows, g.gathered, g.gradInner, false)
	if g.h.features() {
		return nil
	}
	kernels.MatMulTransB(g.team, g.gradIn, g.rows, g.in, g.out, g.gradInner, g.w, false)
	return g.gradIn
}

func (g *gin) EmitGrad(grad []float32, _ Pass) []float32 { return grad }
