package model_test

import "siafu/kernels/model"

// GCN in residual blocks (He et al. 2016, §3.2) where a layer keeps the width:
// H' = dropout(relu(Â H W + b + H)), without relu and dropout in the last layer.
var residual = model.Kind{Name: "residual", Weights: model.OneProduct, Layer: residualLayer,
	Coefficients: model.GCNCoefficients, Order: "apply-first", Help: "GCN in residual blocks", Paper: "He et al. 2016"}

type block struct {
	h              model.Hidden
	weight, bias   model.Param
	drop           *model.Dropout
	out            int
	relu, shortcut bool
}

func residualLayer(b *model.Builder, l int) model.Layer {
	in, out := b.Spec.Dims[l], b.Spec.Dims[l+1]
	b.Alloc(model.Emitted, out)                          // HW
	b.ShareStorage(model.Output, model.Gathered)         // H' replaces ÂHW
	b.ShareStorage(model.GatheredGrad, model.OutputGrad) // likewise in the backward pass
	b.AllocGrad(model.InputGrad)
	return &block{h: b.Hidden(), weight: b.Weight(l, 0), bias: b.Weight(l, 1), drop: b.Dropout(l),
		out: out, relu: !b.Plain(), shortcut: l > 0 && in == out}
}

func (r *block) GatherWidth() int      { return r.out }
func (r *block) GathersBackward() bool { return true }

func (r *block) Flow(s model.Stage) model.Flow {
	type values = []model.Value
	switch s {
	case model.Emit:
		return model.Flow{Reads: values{model.Input}, Writes: values{model.Emitted}}
	case model.Apply:
		return model.Flow{Reads: values{model.Gathered, model.Input}, Writes: values{model.Output}}
	case model.ApplyBackward:
		return model.Flow{Reads: values{model.OutputGrad, model.Output}, Writes: values{model.GatheredGrad}, Grads: []model.Param{r.bias}}
	}
	return model.Flow{Reads: values{model.EmittedGrad, model.GatheredGrad, model.Input}, Writes: values{model.InputGrad},
		Grads: []model.Param{r.weight}}
}

func (r *block) Run(s model.Stage, x *model.Step) {
	switch s {
	case model.Emit:
		r.h.Multiply(x, x.At(model.Emitted), x.W(r.weight))
	case model.Apply:
		h := x.At(model.Output)
		if r.shortcut {
			x.Ops.Add(h, x.At(model.Input))
		}
		x.Ops.BiasReLUDropout(h, h, x.W(r.bias), r.relu, x.Mask(r.drop))
	case model.ApplyBackward:
		grad := x.At(model.OutputGrad)
		x.Ops.BiasReLUDropoutGrad(grad, x.Grad(r.bias), grad, x.At(model.Output), r.relu, x.Mask(r.drop))
	case model.EmitBackward:
		r.h.MultiplyGrad(x, x.Grad(r.weight), x.At(model.EmittedGrad))
		r.h.InputGrad(x, x.At(model.InputGrad), x.At(model.EmittedGrad), x.W(r.weight), false)
		if r.shortcut {
			x.Ops.Add(x.At(model.InputGrad), x.At(model.GatheredGrad))
		}
	}
}
