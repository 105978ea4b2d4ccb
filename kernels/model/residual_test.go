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
	weight, bias                  model.Weight
	drop                          *kernels.Dropout
	relu, shortcut                bool
	emitted, output, grad, gradIn kernels.Mat // HW, H', gradient of what relu is applied to, of H
}

func residualLayer(b *model.Builder, l int) model.Layer {
	in, out := b.Spec.Dims[l], b.Spec.Dims[l+1]
	return &block{Builder: b, h: b.Hidden(l), weight: b.Weight(l, 0), bias: b.Weight(l, 1),
		drop: b.Dropout(l), relu: !b.Last(l), shortcut: l > 0 && in == out, emitted: b.Room(out), gradIn: b.GradRoom(l)}
}

func (r *block) GatherWidth() int      { return r.emitted.Cols }
func (r *block) GathersBackward() bool { return true }

func (r *block) Emit(h kernels.Mat, p model.Pass) kernels.Mat {
	r.h.Take(h)
	r.h.Multiply(r.emitted, r.weight.W, p)
	return r.emitted
}

func (r *block) Apply(gathered kernels.Mat, p model.Pass) kernels.Mat {
	if r.shortcut {
		r.Ops.Add(gathered, r.h.Rows(p))
	}
	r.Ops.BiasReLUDropout(gathered, gathered, r.bias.W, r.relu, p.Mask(r.drop))
	r.output = gathered
	return gathered
}

func (r *block) ApplyGrad(grad kernels.Mat, p model.Pass) kernels.Mat {
	r.Ops.BiasReLUDropoutGrad(grad, r.bias.Grad, grad, r.output, r.relu, p.Mask(r.drop))
	r.grad = grad
	return grad
}

func (r *block) EmitGrad(grad kernels.Mat, p model.Pass) kernels.Mat {
	r.h.MultiplyGrad(r.weight.Grad, grad, p)
	r.h.InputGrad(r.gradIn, grad, r.weight.W, false)
	if r.shortcut {
		r.Ops.Add(r.gradIn, r.grad)
	}
	return r.gradIn
}
