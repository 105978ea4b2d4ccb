package model_test

import (
	"siafu/kernels"
	"siafu/kernels/model"
)

// GCN in residual blocks (He et al. 2016, §3.2) where a layer keeps the width:
// H' = dropout(relu(Â H W + b + H)), without relu and dropout in the last layer.
var residual = model.Kind{Name: "residual", Weights: model.OneProduct, Layer: residualLayer,
	Coefficients: model.GCNCoefficients, Order: "apply-first"}

type block struct {
	*model.Builder
	h                             model.Hidden
	out                           int
	weight, bias                  model.Weight
	drop                          *kernels.Dropout
	relu, shortcut                bool
	emitted, output, grad, gradIn []float32 // HW, H', gradient of what relu is applied to, of H
}

func residualLayer(b *model.Builder, l int) model.Layer {
	in, out := b.Spec.Dims[l], b.Spec.Dims[l+1]
	return &block{Builder: b, h: b.Hidden(l), out: out, weight: b.Weight(l, 0), bias: b.Weight(l, 1),
		drop: b.Dropout(l), relu: !b.Last(l), shortcut: l > 0 && in == out, emitted: b.Room(out), gradIn: b.GradRoom(l)}
}

func (r *block) GatherWidth() int      { return r.out }
func (r *block) GathersBackward() bool { return true }

func (r *block) Emit(h []float32, p model.Pass) []float32 {
	r.h.Take(h)
	r.h.Multiply(r.emitted, r.out, r.weight.W, p)
	return r.emitted
}

func (r *block) Apply(gathered []float32, p model.Pass) []float32 {
	if r.shortcut {
		kernels.Add(r.Team, gathered, r.h.Rows(p))
	}
	kernels.BiasReLUDropout(r.Team, gathered, r.Rows, r.out, gathered, r.bias.W, r.relu, p.Mask(r.drop))
	r.output = gathered
	return gathered
}

func (r *block) ApplyGrad(grad []float32, p model.Pass) []float32 {
	kernels.BiasReLUDropoutGrad(r.Team, grad, r.bias.Grad, r.Rows, r.out, grad, r.output, r.relu, p.Mask(r.drop))
	r.grad = grad
	return grad
}

func (r *block) EmitGrad(grad []float32, p model.Pass) []float32 {
	r.h.MultiplyGrad(r.weight.Grad, r.out, grad, p)
	r.h.InputGrad(r.gradIn, r.out, grad, r.weight.W, false)
	if r.shortcut {
		kernels.Add(r.Team, r.gradIn, r.grad)
	}
	return r.gradIn
}
